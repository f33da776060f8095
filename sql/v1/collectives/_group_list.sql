-- Which lists of ranks do process groups have?
-- Grain: distinct list, numbered in the order of the texts. A list of 1,000 ranks has some 5,000 characters, and every
-- kernel of the group has it: steps that match kernels carry the number, so that their time and memory do not grow with
-- the square of the number of ranks. is_shortened: the profiler replaced ranks by an ellipsis.
CREATE VIEW v1._group_list AS
SELECT
    e.group_ranks,
    row_number() OVER (ORDER BY e.group_ranks) AS list_id,
    contains(e.group_ranks, '...') AS is_shortened
FROM main.kernel_event AS e
WHERE e.group_ranks IS NOT NULL
GROUP BY e.group_ranks;

COMMENT ON VIEW v1._group_list IS
'Lists of ranks of process groups, numbered. Grain: distinct list.';
