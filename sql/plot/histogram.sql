-- The histogram of one kernel: the one with the most total time among those whose name equals, contains or matches a
-- text.
-- In:  answer: rows of v1.kernel_histogram. {kernel}: that text, or NULL. {groups}: the columns of --by, or NULL.
WITH matching AS (
    SELECT a.name, sum(a.total_ns) AS total_ns
    FROM answer AS a
    WHERE {kernel} IS NULL OR a.name = {kernel} OR contains(a.name, {kernel}) OR a.name GLOB {kernel}
    GROUP BY a.name
),
one AS (
    SELECT m.name, (SELECT count(*) FROM matching) AS matching_kernels
    FROM matching AS m
    ORDER BY m.name = {kernel} DESC, m.total_ns DESC, m.name
    LIMIT 1
)
SELECT
    a.*,
    o.matching_kernels
FROM answer AS a
INNER JOIN one AS o ON o.name = a.name
ORDER BY {groups}, a.bin
