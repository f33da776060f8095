-- When do kernels of several streams run on a device at once? Grain: capture × device × span, disjoint. Each stream adds
-- the pieces that its kernels add to the union of its earlier ones; sums over the starts and ends of pieces count the
-- streams that are busy. A kernel runs beside one of another stream if such a span overlaps it.
CREATE VIEW v1._concurrent_span AS
WITH several_streams AS (
    SELECT e.capture_id, e.device_id
    FROM main.kernel_event AS e
    WHERE e.kind = 'kernel'
    GROUP BY e.capture_id, e.device_id
    HAVING count(DISTINCT e.stream_id) > 1
),
kernels AS (
    SELECT
        e.capture_id, e.device_id, e.start_ns, e.end_ns,
        max(e.end_ns) OVER (
            PARTITION BY e.capture_id, e.device_id, e.stream_id
            ORDER BY e.start_ns, e.event_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS reach_ns
    FROM v1._unclassed_event AS e
    INNER JOIN several_streams AS s
        ON s.capture_id = e.capture_id AND s.device_id IS NOT DISTINCT FROM e.device_id
    WHERE e.kind = 'kernel'
),
changes AS (
    SELECT k.capture_id, k.device_id, greatest(k.start_ns, coalesce(k.reach_ns, k.start_ns)) AS at_ns, 1 AS streams
    FROM kernels AS k
    WHERE k.end_ns > greatest(k.start_ns, coalesce(k.reach_ns, k.start_ns))
    UNION ALL
    SELECT k.capture_id, k.device_id, k.end_ns AS at_ns, -1 AS streams
    FROM kernels AS k
    WHERE k.end_ns > greatest(k.start_ns, coalesce(k.reach_ns, k.start_ns))
),
levels AS (
    SELECT
        c.capture_id, c.device_id, c.at_ns,
        sum(sum(c.streams)) OVER (PARTITION BY c.capture_id, c.device_id ORDER BY c.at_ns) AS streams,
        lead(c.at_ns) OVER (PARTITION BY c.capture_id, c.device_id ORDER BY c.at_ns) AS until_ns
    FROM changes AS c
    GROUP BY c.capture_id, c.device_id, c.at_ns
)
SELECT v.capture_id, v.device_id, v.at_ns AS start_ns, v.until_ns AS end_ns
FROM levels AS v
WHERE v.streams >= 2;
