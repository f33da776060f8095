-- Marks in nest_out the rows to be searched again because ranges cross (is_odd), including everything that starts
-- inside an odd range, whose depths are off by one after the crossed range has ended. Run only if a row is odd.
-- Out: temp table nest_odd: all ranges of the threads that have an odd one, with a number for each thread (lane).
CREATE OR REPLACE TEMP TABLE nest_odd AS
SELECT
    item_id, lane, start_ns, end_ns, place, parent_id,
    is_odd OR coalesce(max(CASE WHEN is_odd THEN end_ns END) OVER earlier > start_ns, false) AS is_odd
FROM (
    SELECT n.item_id, o.lane, n.start_ns, n.end_ns, n.place, n.parent_id, n.is_odd
    FROM nest_out AS n
    INNER JOIN (
        SELECT lane_a, lane_b, row_number() OVER (ORDER BY lane_a, lane_b) AS lane
        FROM nest_out
        WHERE is_odd
        GROUP BY lane_a, lane_b
    ) AS o
        ON n.lane_a = o.lane_a AND n.lane_b = o.lane_b
)
WINDOW earlier AS (PARTITION BY lane ORDER BY place ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW);
