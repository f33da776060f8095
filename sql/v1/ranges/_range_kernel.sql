-- Which GPU events belong to which ranges, under each rule? A range contains everything that its inner ranges contain.
-- Grain: rule × range × GPU event. Method: the innermost ranges found at load, expanded to their ancestors. If ranges
-- of a thread cross, an event has several innermost ones with common ancestors; DISTINCT counts it once.
CREATE VIEW v1._range_kernel AS
SELECT DISTINCT
    m.rule, m.capture_id, m.event_id,
    r.annotation_id, r.name, r.domain, r.style, r.process_id, r.thread_id
FROM main.annotation_kernel AS m
INNER JOIN v1._annotation_ancestor AS c ON c.capture_id = m.capture_id AND c.annotation_id = m.annotation_id
INNER JOIN main.annotation AS r ON r.capture_id = c.ancestor_capture_id AND r.annotation_id = c.ancestor_id
WHERE r.style <> 'gpu_projection' AND r.time_fault IS NULL;
