-- How long a GPU event lasted if it ended when the next one of its queue started. On ROCm a late completion
-- timestamp can run far into the following kernels, which a sum of durations then counts again.
-- Grain: event of an AMD device whose queue (or, failing that, stream) is known. Events that start together are
-- not cut by each other: the next start is a later one.
CREATE VIEW v1._clipped_event AS
WITH queued AS (
    SELECT
        e.capture_id,
        e.event_id,
        e.start_ns,
        e.duration_ns,
        e.device_id,
        e.queue_id,
        CASE WHEN e.queue_id IS NULL THEN e.stream_id END AS stream_id
    FROM main.kernel_event AS e
    INNER JOIN main.device AS d ON d.capture_id = e.capture_id AND d.device_id = e.device_id AND d.vendor = 'AMD'
    WHERE coalesce(e.queue_id, e.stream_id) IS NOT NULL
)
SELECT
    q.capture_id,
    q.event_id,
    least(
        q.duration_ns,
        min(q.start_ns) OVER (
            PARTITION BY q.capture_id, q.device_id, q.queue_id, q.stream_id
            ORDER BY q.start_ns RANGE BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING
        ) - q.start_ns
    ) AS clipped_duration_ns
FROM queued AS q;
