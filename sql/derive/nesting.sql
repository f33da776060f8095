-- Finds, for time ranges on threads, the innermost range that contains each (its parent), and its depth.
-- In:  temp table nest_in(item_id, lane_a, lane_b, start_ns, end_ns, tie): lanes are process and thread, never NULL;
--      parameter slack: ns by which a child may end after its parent (clocks with whole microseconds).
-- Out: temp table nest_out(item_id, lane_a, lane_b, start_ns, end_ns, parent_id, depth, place, is_crossing);
--      is_crossing: the range starts inside another one and ends after it.
-- Method: a join of all enclosing pairs explodes. A running sum of openings minus closings gives each range its depth,
-- and the parent is the last range opened one level above: two sorted passes, whatever the depth. This is exact as long
-- as ranges nest; if two cross, the parent found does not contain its child, and those few are searched individually.
CREATE OR REPLACE TEMP TABLE nest_walk AS
WITH boundary AS (
    SELECT item_id, lane_a, lane_b, start_ns AS at_ns, 1 AS is_opening, end_ns, tie, (end_ns > start_ns)::INTEGER AS step
    FROM nest_in
    UNION ALL
    SELECT item_id, lane_a, lane_b, end_ns AS at_ns, 0 AS is_opening, end_ns, tie, -1 AS step
    FROM nest_in
    WHERE end_ns > start_ns
),

walk AS (
    SELECT
        item_id, lane_a, lane_b, at_ns, end_ns, is_opening, step,
        sum(step) OVER lane AS open_now,
        row_number() OVER lane AS place
    FROM boundary
    WINDOW lane AS (
        PARTITION BY lane_a, lane_b
        ORDER BY at_ns, is_opening, end_ns DESC, tie, item_id
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    )
)

SELECT
    item_id, lane_a, lane_b, at_ns AS start_ns, end_ns, place::BIGINT AS place, (open_now - step)::INTEGER AS depth
FROM walk
WHERE is_opening = 1;

CREATE OR REPLACE TEMP TABLE nest_out AS
SELECT
    child.item_id, child.lane_a, child.lane_b, child.start_ns, child.end_ns, child.place, child.depth,
    CASE WHEN child.depth > 0 THEN parent.item_id END AS parent_id,
    child.depth > 0 AND (
        parent.item_id IS NULL OR parent.end_ns + $slack < child.end_ns OR parent.end_ns <= child.start_ns
    ) AS is_odd,
    false AS is_crossing
FROM nest_walk AS child
ASOF LEFT JOIN (
    SELECT item_id, lane_a, lane_b, end_ns, depth, place FROM nest_walk WHERE end_ns > start_ns
) AS parent
    ON child.lane_a = parent.lane_a
    AND child.lane_b = parent.lane_b
    AND child.depth - 1 = parent.depth
    AND child.place > parent.place;
