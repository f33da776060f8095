-- Corrects nest_out where ranges cross (is_odd): the parent is searched among all ranges of the thread, and depth is
-- counted anew along the parents; likewise for what begins inside an odd range, since depths are off by one there after
-- the range that it crosses has ended. A range inside a crossing one may cross the same other range: it is marked as well
-- where it begins before that one ends. What is not marked nests. Run only where a row is odd.
CREATE OR REPLACE TEMP TABLE nest_out AS
SELECT
    item_id, lane_a, lane_b, start_ns, end_ns, place, depth, parent_id, is_crossing,
    is_odd OR coalesce(max(CASE WHEN is_odd THEN end_ns END) OVER earlier > start_ns, false) AS is_odd
FROM nest_out
WINDOW earlier AS (
    PARTITION BY lane_a, lane_b ORDER BY place ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
);

CREATE OR REPLACE TEMP TABLE nest_corrected AS
SELECT
    child.item_id,
    arg_max(other.item_id, other.place) FILTER (other.end_ns + $slack >= child.end_ns) AS parent_id,
    max(other.end_ns) FILTER (other.start_ns < child.start_ns AND other.end_ns + $slack < child.end_ns) AS crossed_until_ns
FROM (SELECT item_id, lane_a, lane_b, start_ns, end_ns, place FROM nest_out WHERE is_odd) AS child
LEFT JOIN (SELECT item_id, lane_a, lane_b, start_ns, end_ns, place FROM nest_out WHERE end_ns > start_ns) AS other
    ON child.lane_a = other.lane_a
    AND child.lane_b = other.lane_b
    AND other.start_ns <= child.start_ns
    AND other.end_ns > child.start_ns
    AND other.place < child.place
GROUP BY child.item_id;

CREATE OR REPLACE TEMP TABLE nest_out AS
WITH RECURSIVE linked AS (
    SELECT
        n.item_id, n.lane_a, n.lane_b, n.start_ns, n.end_ns, n.place,
        CASE WHEN n.is_odd THEN c.parent_id ELSE n.parent_id END AS parent_id,
        c.crossed_until_ns
    FROM nest_out AS n
    LEFT JOIN nest_corrected AS c ON n.item_id = c.item_id
),

counted AS (
    SELECT item_id, 0 AS depth, crossed_until_ns, crossed_until_ns IS NOT NULL AS is_crossing
    FROM linked
    WHERE parent_id IS NULL
    UNION ALL
    SELECT
        l.item_id, c.depth + 1 AS depth,
        greatest(l.crossed_until_ns, c.crossed_until_ns) AS crossed_until_ns,
        l.crossed_until_ns IS NOT NULL OR coalesce(l.start_ns < c.crossed_until_ns, false) AS is_crossing
    FROM linked AS l
    INNER JOIN counted AS c ON l.parent_id = c.item_id
)

SELECT
    l.item_id, l.lane_a, l.lane_b, l.start_ns, l.end_ns, l.place, c.depth::INTEGER AS depth, l.parent_id,
    false AS is_odd, c.is_crossing
FROM linked AS l
INNER JOIN counted AS c ON l.item_id = c.item_id;
