-- How many times does a capture without marked steps repeat the same work? A decode loop, or an iteration without
-- annotations, launches the same sequence of kernels in each pass.
-- Grain: capture with a detected period. Method: kernels are numbered by start; a name recurs regularly if at least
-- three of four distances between its calls are within a tenth of their median. The pass is the longest period on which
-- two names agree (failing that, any), so that neither the layers inside a pass nor an event that occurs once in many
-- passes is mistaken for it. Names that occur in every pass count the passes; for example, a prefill runs different
-- GEMMs than the decode passes after it. A period must cover half of the capture's kernels. Two passes have a single
-- distance: two names must agree on it, and it must cover nine tenths.
-- Nothing is detected if steps are marked or selected (v1._step). In a single pass, the layers are mistaken for passes.
CREATE VIEW v1._detected_pass AS
WITH names AS (
    SELECT e.capture_id, e.name, row_number() OVER (ORDER BY e.capture_id, e.name) AS name_no
    FROM v1._unclassed_event AS e
    WHERE e.kind = 'kernel'
        AND getvariable('step_range') IS NULL
        AND NOT EXISTS (SELECT 1 FROM v1._step AS s WHERE s.capture_id = e.capture_id AND s.step IS NOT NULL)
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
),
regular AS (
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
        AND p.low_gap >= 0.9 * p.period AND p.high_gap <= 1.1 * p.period
),
agreeing AS (
    SELECT r.capture_id, r.device_id, r.name_no, r.kernels, r.period, r.passes, count(*) AS names
    FROM regular AS r
    INNER JOIN regular AS o ON o.capture_id = r.capture_id AND o.device_id IS NOT DISTINCT FROM r.device_id
        AND o.passes = r.passes AND o.period BETWEEN 0.9 * r.period AND 1.1 * r.period
    GROUP BY r.capture_id, r.device_id, r.name_no, r.kernels, r.period, r.passes
),
chosen AS (
    SELECT a.capture_id, a.device_id, a.kernels, a.period
    FROM agreeing AS a
    WHERE a.passes > 2 OR a.names >= 2
    QUALIFY row_number() OVER (
        PARTITION BY a.capture_id, a.device_id ORDER BY a.names < 2, a.period DESC, a.passes DESC, a.name_no
    ) = 1
),
counted AS (
    SELECT c.capture_id, c.device_id, c.kernels, c.period, max(r.passes) AS passes
    FROM chosen AS c
    INNER JOIN regular AS r ON r.capture_id = c.capture_id AND r.device_id IS NOT DISTINCT FROM c.device_id
        AND r.period BETWEEN 0.9 * c.period AND 1.1 * c.period
    GROUP BY c.capture_id, c.device_id, c.kernels, c.period
)
SELECT d.capture_id, d.passes, d.period AS kernels_per_pass
FROM counted AS d
QUALIFY row_number() OVER (PARTITION BY d.capture_id ORDER BY d.kernels DESC, d.device_id NULLS LAST) = 1;
