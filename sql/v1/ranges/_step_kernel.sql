-- Which step a GPU event belongs to: its launch is in the step, on any thread of the process; or, if launches were not
-- recorded, it starts in the step.
-- Grain: GPU event inside a step. If steps are selected ranges (see v1._step), threads can be in different steps at the
-- same time; then the launching thread's own step comes first, else the one with the highest number.
CREATE VIEW v1._step_kernel AS
SELECT
    m.capture_id, m.event_id,
    coalesce(
        CASE WHEN getvariable('step_range') IS NOT NULL THEN max(s.step) FILTER (m.rule = 'thread') END, max(s.step)
    ) AS step,
    coalesce(
        CASE WHEN getvariable('step_range') IS NOT NULL THEN max(s.step_index) FILTER (m.rule = 'thread') END,
        max(s.step_index)
    ) AS step_index,
    max(s.marked_step) AS marked_step
FROM main.annotation_kernel AS m
INNER JOIN v1._step_range AS s ON s.capture_id = m.capture_id AND s.annotation_id = m.annotation_id
WHERE m.rule IN ('process', 'time') OR getvariable('step_range') IS NOT NULL
GROUP BY m.capture_id, m.event_id;
