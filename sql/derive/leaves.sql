-- Adds to call_out the ranges that cross an earlier one, and keeps of all ranges around a call those that lead to all
-- others along their parents. Run after enclosing.sql, only where ranges cross; the result has a row per such chain.
CREATE OR REPLACE TEMP TABLE call_candidate AS
SELECT call_id, lane_a, lane_b, item_id FROM call_out
UNION
SELECT call.call_id, call.lane_a, call.lane_b, n.item_id
FROM call_in AS call
INNER JOIN (SELECT item_id, lane_a, lane_b, start_ns, end_ns FROM nest_out WHERE is_crossing AND end_ns > start_ns) AS n
    ON call.lane_a = n.lane_a
    AND call.lane_b = n.lane_b
    AND n.start_ns <= call.start_ns
    AND call.end_ns <= n.end_ns + $slack
    AND call.start_ns < n.end_ns + $slack;

CREATE OR REPLACE TEMP TABLE call_out AS
WITH RECURSIVE ancestor AS (
    SELECT c.call_id, c.lane_a, c.lane_b, n.parent_id AS item_id
    FROM call_candidate AS c
    INNER JOIN nest_out AS n ON c.item_id = n.item_id
    WHERE n.parent_id IS NOT NULL
    UNION
    SELECT a.call_id, a.lane_a, a.lane_b, n.parent_id AS item_id
    FROM ancestor AS a
    INNER JOIN nest_out AS n ON a.item_id = n.item_id
    WHERE n.parent_id IS NOT NULL
)

SELECT c.call_id, c.lane_a, c.lane_b, c.item_id
FROM call_candidate AS c
ANTI JOIN ancestor AS a
    ON c.call_id = a.call_id AND c.lane_a = a.lane_a AND c.lane_b = a.lane_b AND c.item_id = a.item_id;
