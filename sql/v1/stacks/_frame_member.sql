-- Which GPU events were launched inside which Python frames, under each rule? In reports with --range, this takes the
-- place of v1._range_member if the pattern matches frames instead of ranges. Grain: rule × frame × GPU event.
CREATE VIEW v1._frame_member AS
WITH RECURSIVE chain AS (
    SELECT m.capture_id, m.frame_id, m.frame_id AS ancestor_id
    FROM v1._launch_frame AS m
    UNION
    SELECT c.capture_id, c.frame_id, f.parent_id AS ancestor_id
    FROM chain AS c
    INNER JOIN main.frame AS f ON f.capture_id = c.capture_id AND f.frame_id = c.ancestor_id
    WHERE f.parent_id IS NOT NULL
)
SELECT m.rule, m.capture_id, m.event_id, c.ancestor_id AS annotation_id
FROM v1._launch_frame AS m
INNER JOIN chain AS c ON c.capture_id = m.capture_id AND c.frame_id = m.frame_id;
