-- Which kernel names recur regularly in a capture without marked or selected steps, and after how many kernels?
-- Grain: capture × device × kernel name that recurs regularly: kernels are numbered by start, and at least three of four
-- distances between the name's calls are within a tenth of their median, the period. passes counts its calls. A
-- period must cover half of the capture's kernels; that of two passes, nine tenths.
-- NOT IN instead of NOT EXISTS: DuckDB would keep all events with their names to check the latter.
CREATE VIEW v1._recurring_kernel AS
WITH names AS (
    SELECT e.capture_id, e.name, row_number() OVER (ORDER BY e.capture_id, e.name) AS name_no
    FROM v1._unclassed_event AS e
    WHERE e.kind = 'kernel'
        AND getvariable('step_range') IS NULL
        AND e.capture_id NOT IN (SELECT s.capture_id FROM v1._step AS s WHERE s.step IS NOT NULL)
    GROUP BY e.capture_id, e.name
),
places AS (
    SELECT
        e.capture_id,
        e.device_id,
        n.name_no,
        row_number() OVER (PARTITION BY e.capture_id, e.device_id ORDER BY e.start_ns, e.event_id) AS place
    FROM v1._unclassed_event AS e
    INNER JOIN names AS n ON n.capture_id = e.capture_id AND n.name = e.name
    WHERE e.kind = 'kernel'
),
gaps AS (
    SELECT
        p.capture_id,
        p.device_id,
        p.name_no,
        p.place - lag(p.place) OVER (PARTITION BY p.capture_id, p.device_id, p.name_no ORDER BY p.place) AS gap
    FROM places AS p
),
periods AS (
    SELECT
        g.capture_id,
        g.device_id,
        g.name_no,
        count(*) AS passes,
        median(g.gap) AS period,
        quantile_disc(g.gap, 0.125) AS low_gap,
        quantile_disc(g.gap, 0.875) AS high_gap
    FROM gaps AS g
    GROUP BY g.capture_id, g.device_id, g.name_no
)
SELECT
    p.capture_id,
    p.device_id,
    p.name_no,
    p.passes,
    p.period,
    t.kernels
FROM periods AS p
INNER JOIN (
    SELECT q.capture_id, q.device_id, sum(q.passes) AS kernels
    FROM periods AS q
    GROUP BY q.capture_id, q.device_id
) AS t ON t.capture_id = p.capture_id AND t.device_id IS NOT DISTINCT FROM p.device_id
WHERE p.passes >= 2 AND p.period >= 2
    AND p.passes * p.period >= CASE p.passes WHEN 2 THEN 0.9 ELSE 0.5 END * t.kernels
    AND p.low_gap >= 0.9 * p.period AND p.high_gap <= 1.1 * p.period;
