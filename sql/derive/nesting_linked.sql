-- Corrects nest_out by nest_linked(item_id, parent_id, depth, is_crossing, crossing_id, nested_id), which has the
-- ranges of threads on which some cross. is_crossing: the range, or one around it, starts inside an earlier one, before
-- that one ends, and ends after it. Ranges without it nest.
CREATE OR REPLACE TEMP TABLE nest_out AS
SELECT
    n.item_id, n.lane_a, n.lane_b, n.start_ns, n.end_ns, n.place,
    CASE WHEN l.item_id IS NULL THEN n.depth ELSE l.depth END AS depth,
    CASE WHEN l.item_id IS NULL THEN n.parent_id ELSE l.parent_id END AS parent_id,
    false AS is_odd,
    coalesce(l.is_crossing, false) AS is_crossing
FROM nest_out AS n
LEFT JOIN nest_linked AS l ON n.item_id = l.item_id;
