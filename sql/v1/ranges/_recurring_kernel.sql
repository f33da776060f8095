-- Which kernel names recur regularly in a capture without marked or selected steps, and after how many kernels?
-- Grain: capture × device × kernel name that recurs regularly: kernels are numbered by start, and at least three of four
-- distances between the name's calls are within a tenth of their median, the period. passes counts its calls. A
-- period must cover half of the capture's kernels; that of two passes, nine tenths.
-- Distances are small numbers that repeat, so their median and octiles come from the number of times each occurs: DuckDB
-- would keep all distances in memory for its own.
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
counted AS (
    SELECT g.capture_id, g.device_id, g.name_no, g.gap, count(*) AS calls
    FROM gaps AS g
    GROUP BY ALL
),
summed AS (
    SELECT
        c.*,
        sum(CASE WHEN gap IS NOT NULL THEN calls END) OVER (PARTITION BY capture_id, device_id, name_no) AS gaps,
        sum(calls) OVER (PARTITION BY capture_id, device_id, name_no ORDER BY gap NULLS LAST) AS up_to,
        sum(calls) OVER (PARTITION BY capture_id, device_id) AS kernels
    FROM counted AS c
),
periods AS (
    SELECT
        s.capture_id,
        s.device_id,
        s.name_no,
        sum(s.calls)::BIGINT AS passes,
        (min(s.gap) FILTER (2 * s.up_to >= s.gaps) + min(s.gap) FILTER (2 * s.up_to > s.gaps)) / 2 AS period,
        min(s.gap) FILTER (8 * s.up_to >= s.gaps) AS low_gap,
        min(s.gap) FILTER (8 * s.up_to >= 7 * s.gaps) AS high_gap,
        max(s.kernels) AS kernels
    FROM summed AS s
    GROUP BY s.capture_id, s.device_id, s.name_no
)
SELECT
    p.capture_id,
    p.device_id,
    p.name_no,
    p.passes,
    p.period,
    p.kernels
FROM periods AS p
WHERE p.passes >= 2 AND p.period >= 2
    AND p.passes * p.period >= CASE p.passes WHEN 2 THEN 0.9 ELSE 0.5 END * p.kernels
    AND p.low_gap >= 0.9 * p.period AND p.high_gap <= 1.1 * p.period;
