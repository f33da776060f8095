-- Which rules of range membership apply to a capture?
-- Grain: capture × rule. If launches were recorded, or there is no GPU event at all (for the times of ranges alone):
-- thread and process. If launches were not recorded: time. A rule for which members were found at load always applies.
CREATE VIEW v1._capture_rule AS
WITH facts AS (
    SELECT
        c.capture_id,
        EXISTS (SELECT 1 FROM main.kernel_event AS e WHERE e.capture_id = c.capture_id) AS has_gpu,
        EXISTS (SELECT 1 FROM main.launch AS l WHERE l.capture_id = c.capture_id) AS has_launches
    FROM main.capture AS c
),
found AS (
    SELECT f.capture_id, 'thread' AS rule
    FROM facts AS f
    WHERE f.has_launches OR NOT f.has_gpu
    UNION
    SELECT f.capture_id, 'process' AS rule
    FROM facts AS f
    WHERE f.has_launches OR NOT f.has_gpu
    UNION
    SELECT f.capture_id, 'time' AS rule
    FROM facts AS f
    WHERE f.has_gpu AND NOT f.has_launches
    UNION
    SELECT m.capture_id, m.rule
    FROM main.annotation_kernel AS m
)
SELECT f.capture_id, f.rule, a.has_gpu
FROM found AS f
INNER JOIN facts AS a ON a.capture_id = f.capture_id;
