-- Which is the nearest frame of the user's own code, from a frame on upwards? Grain: frame below such a one.
CREATE VIEW v1._own_frame AS
WITH RECURSIVE kinds AS (
    SELECT
        n.name,
        coalesce(arg_min(r.is_own, (r.place, r.priority, r.pattern)), true) AS is_own
    FROM (
        SELECT DISTINCT f.name
        FROM main.frame AS f
    ) AS n
    LEFT JOIN v1._frame_rule AS r ON try(regexp_matches(n.name, r.pattern))
    GROUP BY n.name
),
marked AS (
    SELECT f.capture_id, f.frame_id, f.parent_id, k.is_own
    FROM main.frame AS f
    INNER JOIN kinds AS k ON k.name = f.name
),
below AS (
    SELECT m.capture_id, m.frame_id, m.frame_id AS own_id
    FROM marked AS m
    WHERE m.is_own
    UNION
    SELECT m.capture_id, m.frame_id, b.own_id
    FROM below AS b
    INNER JOIN marked AS m ON m.capture_id = b.capture_id AND m.parent_id = b.frame_id
    WHERE NOT m.is_own
)
SELECT b.capture_id, b.frame_id, b.own_id
FROM below AS b;
