-- Does a stream compute or communicate? It communicates if collectives take at least half of the time of its events.
-- Grain: capture × device × context × stream.
CREATE VIEW v1._stream_category AS
SELECT
    e.capture_id,
    e.device_id,
    e.context_id,
    e.stream_id,
    CASE
        WHEN 2 * coalesce(sum(e.duration_ns) FILTER (e.class = 'collective'), 0) >= sum(e.duration_ns)
            AND count(*) FILTER (e.class = 'collective') > 0
            THEN 'communication'
        ELSE 'compute'
    END AS category
FROM v1._gpu_event AS e
WHERE e.kind IN ('kernel', 'memcpy', 'memset')
GROUP BY e.capture_id, e.device_id, e.context_id, e.stream_id;
