-- Gives every slice of an exported timeline a lane of its track, so that no slice hides another or is dropped by a
-- viewer.
-- In:  temp table trace_slice.
-- Out: temp table trace_link (n, lane, previous): slices that overlap others of their track. lane is NULL until
--      trace_link_propagate.sql has followed previous, a slice on the same lane that ends before.
-- Tracks of threads nest: the viewer draws slices inside a slice below it, on lane 0. A slice that starts inside
-- another one and ends after it cannot be drawn there. Such slices are found by bracket matching: at each depth the
-- k-th start belongs to the k-th end, and slices that do not match go to lanes of their own. The remaining slices are
-- the pairs of a bracket matching, so none of them crosses another.
-- Tracks of streams do not nest. There, and for slices removed from a thread, lanes are assigned by a queue: a slice
-- takes the lane that has been free for the longest time, else a new one. After i starts and E(i) ends before the i-th
-- start, the number of lanes taken over is i + min(0, min over j <= i of (E(j) - j)), and the i-th slice takes over the
-- lane of the end with this number. A slice that starts after all previous ones have ended is on the first lane again.
CREATE OR REPLACE TEMP TABLE trace_crossing AS
WITH edges AS (
    SELECT s.track, s.n, true AS is_begin, s.start_ns AS at_ns, -s.end_ns AS tie, s.n AS place,
        CASE WHEN s.start_ns = s.end_ns THEN 2 ELSE 1 END AS turn
    FROM temp.trace_slice AS s
    WHERE s.kind <> 'gpu'
    UNION ALL
    SELECT s.track, s.n, false, s.end_ns, -s.start_ns, CASE WHEN s.start_ns = s.end_ns THEN s.n ELSE -s.n END,
        CASE WHEN s.start_ns = s.end_ns THEN 2 ELSE 0 END
    FROM temp.trace_slice AS s
    WHERE s.kind <> 'gpu'
),

depths AS (
    SELECT
        track, n, is_begin, at_ns, turn, tie, place,
        sum(CASE WHEN is_begin THEN 1 ELSE -1 END) OVER (
            PARTITION BY track ORDER BY at_ns, turn, tie, place, is_begin DESC ROWS UNBOUNDED PRECEDING
        ) + CASE WHEN is_begin THEN 0 ELSE 1 END AS depth
    FROM edges
),

numbered AS (
    SELECT
        n, depth,
        row_number() OVER (PARTITION BY track, is_begin, depth ORDER BY at_ns, turn, tie, place) AS ordinal
    FROM depths
)

SELECT n
FROM numbered
GROUP BY n
HAVING min(depth) <> max(depth) OR min(ordinal) <> max(ordinal);

CREATE OR REPLACE TEMP TABLE trace_link AS
WITH flat AS (
    SELECT s.track, s.n, s.kind = 'gpu' AS is_gpu, s.start_ns, s.end_ns, s.start_ns = s.end_ns AS is_empty
    FROM temp.trace_slice AS s
    WHERE s.kind = 'gpu' OR s.n IN (SELECT c.n FROM temp.trace_crossing AS c)
),

begun AS (
    SELECT
        track, n, is_gpu, start_ns, end_ns, is_empty,
        coalesce(start_ns >= max(end_ns) OVER (
            PARTITION BY track ORDER BY start_ns, is_empty DESC, n ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ), true) AS is_first
    FROM flat
),

runs AS (
    SELECT
        track, n, is_gpu, start_ns, end_ns, is_empty,
        sum(is_first::INTEGER) OVER (PARTITION BY track ORDER BY start_ns, is_empty DESC, n ROWS UNBOUNDED PRECEDING) AS run
    FROM begun
),

shared AS (
    SELECT track, run, n, is_gpu, start_ns, end_ns, is_empty
    FROM runs
    QUALIFY NOT is_gpu OR count(*) OVER (PARTITION BY track, run) > 1
),

edges AS (
    SELECT track, run, n, is_gpu, true AS is_begin, start_ns AS at_ns, CASE WHEN is_empty THEN 1 ELSE 2 END AS turn
    FROM shared
    UNION ALL
    SELECT track, run, n, is_gpu, false, end_ns, CASE WHEN is_empty THEN 1 ELSE 0 END
    FROM shared
),

-- Sums, because a filtered count over a window takes quadratic time.
counted AS (
    SELECT
        track, run, n, is_gpu, is_begin,
        (sum(is_begin::INTEGER) OVER before)::BIGINT AS begins,
        (sum((NOT is_begin)::INTEGER) OVER before)::BIGINT AS ends
    FROM edges
    WINDOW before AS (PARTITION BY track, run ORDER BY at_ns, turn, n, is_begin DESC ROWS UNBOUNDED PRECEDING)
),

used AS (
    SELECT
        track, run, n, is_gpu, begins,
        begins + least(0, min(ends - begins) OVER (PARTITION BY track, run ORDER BY begins ROWS UNBOUNDED PRECEDING))
            AS taken
    FROM counted
    WHERE is_begin
),

chosen AS (
    SELECT
        track, run, n, is_gpu, begins, taken,
        CASE WHEN taken > coalesce(lag(taken) OVER (PARTITION BY track, run ORDER BY begins), 0) THEN taken END AS takes_over
    FROM used
),

-- Joined by equality only: with any other condition, DuckDB compares every row with every other.
ended AS (
    SELECT track, run, ends, n
    FROM counted
    WHERE NOT is_begin
)

SELECT
    c.n,
    -- The first lane of a thread holds the nested slices.
    CASE WHEN c.takes_over IS NULL THEN c.begins - c.taken - CASE WHEN c.is_gpu THEN 1 ELSE 0 END END AS lane,
    e.n AS previous
FROM chosen AS c
LEFT JOIN ended AS e ON e.track = c.track AND e.run = c.run AND e.ends = c.takes_over;

DROP TABLE temp.trace_crossing;
