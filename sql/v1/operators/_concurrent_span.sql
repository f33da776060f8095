-- When do kernels of several streams run on a device at once? Grain: capture × device × span, disjoint. Each stream adds
-- the pieces that its kernels add to the union of its earlier ones; sums over the starts and ends of pieces count the
-- streams that are busy. A kernel runs beside one of another stream if such a span overlaps it.
-- Most kernels of a device are on one stream. Of these only those that overlap a kernel of another stream can be in a
-- span, and finding them costs a fifth of sorting all starts and ends.
CREATE VIEW v1._concurrent_span AS
WITH stream_sizes AS (
    SELECT e.capture_id, e.device_id, e.stream_id, count(*) AS kernels
    FROM main.kernel_event AS e
    WHERE e.kind = 'kernel'
    GROUP BY e.capture_id, e.device_id, e.stream_id
),
several_streams AS (
    SELECT z.capture_id, z.device_id, arg_max(v1._asof_key(z.stream_id), z.kernels) AS main_stream
    FROM stream_sizes AS z
    GROUP BY z.capture_id, z.device_id
    HAVING count(z.stream_id) > 1
),
placed AS (
    SELECT
        e.capture_id, e.device_id, e.stream_id, e.event_id, e.start_ns, e.end_ns,
        v1._asof_key(e.stream_id) = s.main_stream AS is_main
    FROM v1._unclassed_event AS e
    INNER JOIN several_streams AS s
        ON s.capture_id = e.capture_id AND s.device_id IS NOT DISTINCT FROM e.device_id
    WHERE e.kind = 'kernel' AND e.end_ns > e.start_ns
),
reaches AS (
    SELECT
        p.capture_id, p.device_id, p.start_ns,
        max(p.end_ns) OVER (PARTITION BY p.capture_id, p.device_id ORDER BY p.start_ns) AS reach_ns
    FROM placed AS p
    WHERE NOT p.is_main
),
kernels AS (
    SELECT
        p.capture_id, p.device_id, p.start_ns, p.end_ns,
        max(p.end_ns) OVER (
            PARTITION BY p.capture_id, p.device_id, p.stream_id
            ORDER BY p.start_ns, p.event_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS reach_ns
    FROM (
        SELECT o.capture_id, o.device_id, o.stream_id, o.event_id, o.start_ns, o.end_ns
        FROM placed AS o
        WHERE NOT o.is_main
        UNION ALL
        SELECT m.capture_id, m.device_id, m.stream_id, m.event_id, m.start_ns, m.end_ns
        FROM placed AS m
        ASOF INNER JOIN reaches AS r
            ON r.capture_id = m.capture_id AND v1._asof_key(r.device_id) = v1._asof_key(m.device_id) AND r.start_ns < m.end_ns
        WHERE m.is_main AND r.reach_ns > m.start_ns
    ) AS p
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
