-- The parts of GPU time on the average rank of each configuration, for the first 60 of them.
-- In:  answer: rows of v1.gpu_timeline_average. {place}: order of configurations.
WITH placed AS (
    SELECT
        a.*,
        dense_rank() OVER (ORDER BY {place}, {groups}) AS bar
    FROM answer AS a
    WHERE a.part NOT IN ('busy', 'total')
)
SELECT
    p.* EXCLUDE (bar),
    p.bar,
    sum(p.mean_ns) OVER (PARTITION BY p.bar ORDER BY p.place) - p.mean_ns AS from_ns,
    sum(p.mean_ns) OVER (PARTITION BY p.bar ORDER BY p.place) AS to_ns,
    sum(p.mean_ns) OVER (PARTITION BY p.bar ORDER BY p.place) - p.mean_ns / 2 AS middle_ns,
    greatest(max(p.bar) OVER () - 60, 0) AS left_out
FROM placed AS p
QUALIFY p.bar <= 60
ORDER BY p.bar, p.place
