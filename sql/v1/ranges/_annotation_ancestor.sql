-- Which ranges contain a range, itself included, for the ranges that are innermost around GPU events.
-- Grain: range × enclosing range. Other ranges are excluded, because pushes without a pop nest as deep as there are
-- ranges. UNION, not UNION ALL, so that a cycle of parents in a damaged file ends. The capture appears twice: join members
-- by capture_id and ranges by ancestor_capture_id. With one column for both, DuckDB 1.4 and 1.5 derive that events and
-- ranges share a capture and, overestimating the recursion, join these first: every event with every range.
CREATE VIEW v1._annotation_ancestor AS
WITH RECURSIVE chain AS (
    SELECT m.capture_id, m.annotation_id, m.capture_id AS ancestor_capture_id, m.annotation_id AS ancestor_id
    FROM main.annotation_kernel AS m
    UNION
    SELECT c.capture_id, c.annotation_id, a.capture_id AS ancestor_capture_id, a.parent_id AS ancestor_id
    FROM chain AS c
    INNER JOIN main.annotation AS a ON a.capture_id = c.ancestor_capture_id AND a.annotation_id = c.ancestor_id
    WHERE a.parent_id IS NOT NULL
)
SELECT c.capture_id, c.annotation_id, c.ancestor_capture_id, c.ancestor_id
FROM chain AS c;
