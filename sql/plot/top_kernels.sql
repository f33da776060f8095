-- The kernel names with most time, for each --by group: the first 30 names, or the first 10 of 12 groups.
-- In:  answer: rows of v1.top_kernels. {place}: order of the groups. {groups}: the --by columns.
WITH ranked AS (
    SELECT
        a.*,
        dense_rank() OVER (ORDER BY {place}, {groups}) AS panel,
        row_number() OVER (PARTITION BY {groups} ORDER BY a.total_ns DESC, a.name, a.class) AS place,
        count(*) OVER (PARTITION BY {groups}) AS group_names,
        sum(a.calls) OVER (PARTITION BY {groups}) AS group_calls
    FROM answer AS a
),
chosen AS (
    SELECT r.*, max(r.panel) OVER () AS panels
    FROM ranked AS r
)
SELECT
    c.* EXCLUDE (panels, group_names, group_calls),
    sum(c.group_calls) FILTER (c.place = 1) OVER ()::BIGINT AS all_calls,
    greatest(c.panels - 12, 0) AS left_out,
    sum(c.group_names) FILTER (c.place = 1) OVER () - count(*) OVER () AS other_names,
    100.0 - sum(c.share_percent) OVER () / min(c.panels) OVER () AS other_percent
FROM chosen AS c
WHERE c.panel <= 12 AND c.place <= CASE WHEN c.panels = 1 THEN 30 ELSE 10 END
ORDER BY c.panel, c.place
