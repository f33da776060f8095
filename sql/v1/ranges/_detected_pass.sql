-- How many times does a capture without marked steps repeat the same work? A decode loop, or an iteration without
-- annotations, launches the same sequence of kernels in each pass.
-- Grain: capture with a detected period. The pass is the longest period on which two names of v1._recurring_kernel agree
-- (failing that, any), so that neither the layers inside a pass nor an event that occurs once in many passes is mistaken
-- for it. Names that occur in every pass count the passes; for example, a prefill runs different GEMMs than the decode
-- passes after it. Two passes have a single distance: two names must agree on it.
-- Nothing is detected if steps are marked or selected (v1._step). In a single pass, the layers are mistaken for passes.
CREATE VIEW v1._detected_pass AS
WITH regular AS (
    SELECT r.*
    FROM v1._recurring_kernel AS r
),
alike AS (
    SELECT r.capture_id, r.device_id, r.kernels, r.period, r.passes, count(*) AS names
    FROM regular AS r
    GROUP BY r.capture_id, r.device_id, r.kernels, r.period, r.passes
),
agreeing AS (
    SELECT a.capture_id, a.device_id, a.kernels, a.period, a.passes, sum(o.names) AS names
    FROM alike AS a
    INNER JOIN alike AS o ON o.capture_id = a.capture_id AND o.device_id IS NOT DISTINCT FROM a.device_id
        AND o.passes = a.passes AND o.period BETWEEN 0.9 * a.period AND 1.1 * a.period
    GROUP BY a.capture_id, a.device_id, a.kernels, a.period, a.passes
),
chosen AS (
    SELECT a.capture_id, a.device_id, a.kernels, a.period
    FROM agreeing AS a
    WHERE a.passes > 2 OR a.names >= 2
    QUALIFY row_number() OVER (
        PARTITION BY a.capture_id, a.device_id ORDER BY a.names < 2, a.period DESC, a.passes DESC
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
