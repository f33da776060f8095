-- Which step a GPU event belongs to: its launch lies in the step on any thread of the process, or, where launches
-- were not recorded, it starts in the step.
-- Grain: GPU event inside a step.
CREATE VIEW v1._step_kernel AS
SELECT m.capture_id, m.event_id, max(s.step) AS step, max(s.step_index) AS step_index
FROM main.annotation_kernel AS m
INNER JOIN v1._step_range AS s ON s.capture_id = m.capture_id AND s.annotation_id = m.annotation_id
WHERE m.rule IN ('process', 'time')
GROUP BY m.capture_id, m.event_id;
