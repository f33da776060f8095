-- Adds to call_out the ranges that cross an earlier one, and keeps, of all ranges around a call, those that lead to all
-- others through their parents. Run after enclosing.sql, only if ranges cross; the result has one row per such chain.
-- Method: calls numbered by start are consecutive inside a range, so the only wasted pairs are calls that end too late.
-- Everything that contains a call also contains it with all its parents, so a range leads to another one if that is the
-- nearest crossing range, or the nearest other range, around it.
CREATE OR REPLACE TEMP TABLE call_place AS
SELECT
    call_id, lane_a, lane_b, start_ns, end_ns,
    row_number() OVER (PARTITION BY lane_a, lane_b ORDER BY start_ns, call_id) AS place
FROM call_in;

CREATE OR REPLACE TEMP TABLE call_candidate AS
WITH called AS (
    SELECT lane_a, lane_b, start_ns, max(place) AS place
    FROM call_place
    GROUP BY lane_a, lane_b, start_ns
),

crossing AS (
    SELECT item_id, lane_a, lane_b, start_ns, end_ns + $slack AS until_ns
    FROM nest_out
    WHERE is_crossing AND end_ns > start_ns
),

pair AS (
    SELECT
        n.item_id, n.lane_a, n.lane_b, n.until_ns,
        unnest(range(coalesce(before.place, 0) + 1, coalesce(until.place, 0) + 1)) AS place
    FROM crossing AS n
    ASOF LEFT JOIN called AS before
        ON n.lane_a = before.lane_a AND n.lane_b = before.lane_b AND n.start_ns > before.start_ns
    ASOF LEFT JOIN called AS until
        ON n.lane_a = until.lane_a AND n.lane_b = until.lane_b AND n.until_ns > until.start_ns
)

SELECT call_id, lane_a, lane_b, item_id FROM call_out
UNION
SELECT call.call_id, call.lane_a, call.lane_b, pair.item_id
FROM pair
INNER JOIN call_place AS call
    ON pair.lane_a = call.lane_a AND pair.lane_b = call.lane_b AND pair.place = call.place
WHERE call.end_ns <= pair.until_ns;

CREATE OR REPLACE TEMP TABLE call_out AS
WITH above AS (
    SELECT c.call_id, c.lane_a, c.lane_b, l.crossing_id AS item_id
    FROM call_candidate AS c
    INNER JOIN nest_linked AS l ON c.item_id = l.item_id
    UNION ALL
    SELECT c.call_id, c.lane_a, c.lane_b, l.nested_id AS item_id
    FROM call_candidate AS c
    INNER JOIN nest_linked AS l ON c.item_id = l.item_id
)

SELECT c.call_id, c.lane_a, c.lane_b, c.item_id
FROM call_candidate AS c
ANTI JOIN above AS a
    ON c.call_id = a.call_id AND c.lane_a = a.lane_a AND c.lane_b = a.lane_b AND c.item_id = a.item_id;
