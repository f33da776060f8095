-- Which lists of ranks do process groups have?
-- Grain: distinct list, numbered in the order of the texts. A list of 1,000 ranks has some 5,000 characters, and every
-- kernel of the group has it: steps that match kernels carry the number, so that their time and memory do not grow with
-- the square of the number of ranks. is_shortened: the profiler replaced ranks by an ellipsis. The lists pass through
-- one list, so that the planner expects few of them and looks up kernels among lists, not the reverse.
CREATE VIEW v1._group_list AS
WITH lists AS (
    SELECT unnest(list(d.group_ranks)) AS group_ranks
    FROM (
        SELECT DISTINCT e.group_ranks
        FROM main.kernel_event AS e
        WHERE e.group_ranks IS NOT NULL
    ) AS d
)
SELECT
    l.group_ranks,
    row_number() OVER (ORDER BY l.group_ranks) AS list_id,
    contains(l.group_ranks, '...') AS is_shortened
FROM lists AS l;
