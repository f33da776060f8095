-- Which annotations mark training steps (ProfilerStep#N), and the place of each among the steps of its capture.
-- Grain: annotation. The place counts distinct numbers, so a step marked on several threads is one step.
CREATE VIEW v1._step AS
WITH marks AS (
    SELECT
        a.capture_id,
        a.annotation_id,
        TRY_CAST(regexp_extract(a.name, '^ProfilerStep#([0-9]+)$', 1) AS BIGINT) AS step
    FROM main.annotation AS a
    WHERE a.name LIKE 'ProfilerStep#%' AND a.style NOT IN ('mark', 'gpu_projection')
)
SELECT
    m.capture_id,
    m.annotation_id,
    m.step,
    dense_rank() OVER (PARTITION BY m.capture_id ORDER BY m.step) AS step_index
FROM marks AS m
WHERE m.step IS NOT NULL;
