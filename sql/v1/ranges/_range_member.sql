-- Which GPU events belong to which ranges, under each rule, as ids only: v1._range_kernel without the texts.
-- Grain: rule × range × GPU event.
CREATE VIEW v1._range_member AS
SELECT DISTINCT m.rule, m.capture_id, m.event_id, c.ancestor_id AS annotation_id
FROM main.annotation_kernel AS m
INNER JOIN v1._annotation_ancestor AS c ON c.capture_id = m.capture_id AND c.annotation_id = m.annotation_id;
