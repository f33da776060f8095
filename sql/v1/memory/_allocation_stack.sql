-- What does the stack of an allocation say (memory snapshots)? Grain: innermost frame of such a stack. source is the
-- nearest frame of the user's own code (v1._frame_rule), else the innermost one. PyTorch's dispatcher calls operators
-- through at::_ops::NAME::call, if compiled frames were recorded; the innermost one counts.
CREATE VIEW v1._allocation_stack AS
WITH RECURSIVE climb AS (
    SELECT DISTINCT m.capture_id, m.frame_id AS leaf_id, 0 AS height, f.parent_id, f.name
    FROM main.memory_event AS m
    INNER JOIN main.frame AS f ON f.capture_id = m.capture_id AND f.frame_id = m.frame_id
    UNION
    SELECT c.capture_id, c.leaf_id, c.height + 1 AS height, f.parent_id, f.name
    FROM climb AS c
    INNER JOIN main.frame AS f ON f.capture_id = c.capture_id AND f.frame_id = c.parent_id
    WHERE c.height < 1000
),
kinds AS (
    SELECT
        n.name,
        coalesce(arg_min(r.is_own, (r.place, r.priority, r.pattern)), true) AS is_own
    FROM (
        SELECT DISTINCT c.name
        FROM climb AS c
    ) AS n
    LEFT JOIN v1._frame_rule AS r ON try(regexp_matches(n.name, r.pattern))
    GROUP BY n.name
)
SELECT
    c.capture_id, c.leaf_id,
    coalesce(arg_min(c.name, c.height) FILTER (k.is_own), arg_min(c.name, c.height)) AS source,
    'aten::' || regexp_extract(
        arg_min(c.name, c.height) FILTER (starts_with(c.name, '<at::_ops::')), '^<at::_ops::(\w+)::', 1) AS op_name
FROM climb AS c
INNER JOIN kinds AS k ON k.name = c.name
GROUP BY c.capture_id, c.leaf_id;
