-- Finds the innermost range that contains each of many calls.
-- In:  nest_out (nesting.sql; its crossing ranges are ignored here) and temp table call_in(call_id, lane_a, lane_b,
--      start_ns, end_ns); parameter slack: ns by which a call may end after its range.
-- Out: temp table call_out(call_id, lane_a, lane_b, item_id).
-- Method: the innermost range of a thread is constant between consecutive boundaries, so one ASOF join over these
-- segments finds it. A call that ends after that range belongs to the nearest enclosing range that contains the whole
-- call. If several boundaries have the same time, the last opening counts, else the outermost closing.
CREATE OR REPLACE TEMP TABLE nest_segment AS
WITH boundary AS (
    SELECT lane_a, lane_b, start_ns AS at_ns, item_id, 1000000 + depth AS rank FROM nest_out
    WHERE end_ns > start_ns AND NOT is_crossing
    UNION ALL
    SELECT lane_a, lane_b, end_ns AS at_ns, parent_id AS item_id, -depth AS rank FROM nest_out
    WHERE end_ns > start_ns AND NOT is_crossing
)

-- If several boundaries have the same time, the last opening counts, else the outermost closing.
SELECT lane_a, lane_b, at_ns, arg_max(coalesce(item_id, -1), rank) AS item_id
FROM boundary
GROUP BY lane_a, lane_b, at_ns;

CREATE OR REPLACE TEMP TABLE call_out AS
WITH RECURSIVE seed AS (
    SELECT call.call_id, call.lane_a, call.lane_b, call.start_ns, call.end_ns, segment.item_id
    FROM call_in AS call
    ASOF INNER JOIN nest_segment AS segment
        ON call.lane_a = segment.lane_a AND call.lane_b = segment.lane_b AND call.start_ns >= segment.at_ns
    WHERE segment.item_id >= 0
),

judged AS (
    SELECT
        s.call_id, s.lane_a, s.lane_b, s.start_ns, s.end_ns, n.item_id, n.parent_id,
        s.end_ns <= n.end_ns + $slack AND s.start_ns < n.end_ns + $slack AS is_inside
    FROM seed AS s
    INNER JOIN nest_out AS n ON s.item_id = n.item_id
),

climb AS (
    SELECT call_id, lane_a, lane_b, start_ns, end_ns, item_id, parent_id, is_inside FROM judged WHERE NOT is_inside
    UNION ALL
    SELECT
        c.call_id, c.lane_a, c.lane_b, c.start_ns, c.end_ns, n.item_id, n.parent_id,
        c.end_ns <= n.end_ns + $slack AND c.start_ns < n.end_ns + $slack AS is_inside
    FROM climb AS c
    INNER JOIN nest_out AS n ON c.parent_id = n.item_id
    WHERE NOT c.is_inside
)

SELECT call_id, lane_a, lane_b, item_id FROM judged WHERE is_inside
UNION ALL
SELECT call_id, lane_a, lane_b, item_id FROM climb WHERE is_inside;
