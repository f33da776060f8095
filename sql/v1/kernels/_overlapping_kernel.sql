-- Which kernels start before an earlier kernel of their stream has ended (programmatic dependent launch, graph
-- branches): normal on today's GPUs, and the reason why busy time is a union and never a sum. On AMD, where the tool
-- numbers streams anew without end, the hardware queue stands for the stream.
-- Grain: overlapping kernel. A kernel of no length overlaps nothing.
CREATE VIEW v1._overlapping_kernel AS
WITH kernels AS (
    SELECT
        e.capture_id,
        e.event_id,
        e.start_ns,
        e.duration_ns,
        max(e.start_ns + e.duration_ns) OVER (
            PARTITION BY
                e.capture_id, e.device_id, e.context_id, e.queue_id,
                CASE WHEN e.queue_id IS NULL THEN e.stream_id END
            ORDER BY e.start_ns, e.event_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS earlier_end_ns
    FROM main.kernel_event AS e
    WHERE e.kind = 'kernel' AND e.time_fault IS NULL
)
SELECT k.capture_id, k.event_id
FROM kernels AS k
WHERE k.duration_ns > 0 AND k.earlier_end_ns > k.start_ns;
