-- Which step a range belongs to: the step itself and every range below it.
-- Grain: annotation inside a step. UNION, not UNION ALL, so that a cycle of parents in a damaged file ends.
CREATE VIEW v1._step_range AS
WITH RECURSIVE inside AS (
    SELECT s.capture_id, s.annotation_id, s.step, s.step_index, s.marked_step
    FROM v1._step AS s
    UNION
    SELECT a.capture_id, a.annotation_id, i.step, i.step_index, i.marked_step
    FROM inside AS i
    INNER JOIN main.annotation AS a ON a.capture_id = i.capture_id AND a.parent_id = i.annotation_id
)
SELECT
    i.capture_id, i.annotation_id,
    max(i.step) AS step,
    max(i.step_index) AS step_index,
    max(i.marked_step) AS marked_step
FROM inside AS i
GROUP BY i.capture_id, i.annotation_id;
