-- Which kernels take the time? Like nsys stats cuda_gpu_kern_sum.
-- Grain: kernel name. A name has two rows only if some of its calls were recorded with collective arguments and the
-- name alone would not make them collectives. The deviation comes from integer sums, exact for every row order: with
-- mean m = total // calls, the squares about m are squares - m * (total + total % calls).
-- Calls with and without collective arguments are summed separately, and those of a name that has both are then summed
-- again, so that the class can be looked up at the end without joining events. Also, DuckDB groups by a single text
-- column through its dictionary numbers, but by two columns through the texts, which takes twice as long.
CREATE VIEW v1.top_kernels AS
WITH plain_sum AS (
    SELECT
        /* by e */
        e.name,
        count(*) AS calls,
        sum(e.duration_ns) AS total_ns,
        sum(e.duration_ns::HUGEINT * e.duration_ns) AS squares,
        median(e.duration_ns) AS median_ns,
        min(e.duration_ns) AS min_ns,
        max(e.duration_ns) AS max_ns
    FROM v1._unclassed_event AS e /* join e */
    WHERE e.kind = 'kernel' AND e.collective IS NULL /* filter e */
    GROUP BY /* by e */ e.name
),
argued_sum AS (
    SELECT
        /* by e */
        e.name,
        count(*) AS calls,
        sum(e.duration_ns) AS total_ns,
        sum(e.duration_ns::HUGEINT * e.duration_ns) AS squares,
        median(e.duration_ns) AS median_ns,
        min(e.duration_ns) AS min_ns,
        max(e.duration_ns) AS max_ns
    FROM v1._unclassed_event AS e /* join e */
    WHERE e.kind = 'kernel' AND e.collective IS NOT NULL /* filter e */
    GROUP BY /* by e */ e.name
),
mixed_name AS (
    SELECT DISTINCT p.name
    FROM plain_sum AS p
    INNER JOIN argued_sum AS a ON a.name = p.name
),
pooled_sum AS (
    SELECT
        /* by e */
        e.name,
        count(*) AS calls,
        sum(e.duration_ns) AS total_ns,
        sum(e.duration_ns::HUGEINT * e.duration_ns) AS squares,
        median(e.duration_ns) AS median_ns,
        min(e.duration_ns) AS min_ns,
        max(e.duration_ns) AS max_ns
    FROM v1._unclassed_event AS e /* join e */
    WHERE e.kind = 'kernel' AND e.name IN (SELECT m.name FROM mixed_name AS m) /* filter e */
    GROUP BY /* by e */ e.name
),
sums AS (
    SELECT /* by p */ p.name, p.calls, p.total_ns, p.squares, p.median_ns, p.min_ns, p.max_ns, 'plain' AS calls_taken
    FROM plain_sum AS p
    UNION ALL
    SELECT /* by a */ a.name, a.calls, a.total_ns, a.squares, a.median_ns, a.min_ns, a.max_ns, 'argued' AS calls_taken
    FROM argued_sum AS a
    UNION ALL
    SELECT /* by b */ b.name, b.calls, b.total_ns, b.squares, b.median_ns, b.min_ns, b.max_ns, 'pooled' AS calls_taken
    FROM pooled_sum AS b
)
SELECT
    /* by s */
    s.name,
    CASE WHEN s.calls_taken = 'argued' AND n.rule_source <> 'user' THEN 'collective' ELSE n.class END AS class,
    calls,
    total_ns::BIGINT AS total_ns,
    100.0 * total_ns / nullif(sum(total_ns) OVER (/* partition */), 0) AS share_percent,
    total_ns / calls AS avg_ns,
    median_ns,
    min_ns,
    max_ns,
    v1._sample_stddev(calls, total_ns, squares) AS stddev_ns,
    n.short_name
FROM sums AS s
LEFT JOIN v1._kernel_class AS n ON n.name = s.name
LEFT JOIN mixed_name AS m ON m.name = s.name
WHERE m.name IS NULL OR (s.calls_taken = 'pooled') = (n.class = 'collective' OR n.rule_source = 'user');

COMMENT ON VIEW v1.top_kernels IS 'Time by kernel name, like nsys stats cuda_gpu_kern_sum. Grain: kernel name.';
COMMENT ON COLUMN v1.top_kernels.name IS 'Kernel name as recorded.';
COMMENT ON COLUMN v1.top_kernels.class IS 'Class of the kernel: matmul, collective, elementwise …';
COMMENT ON COLUMN v1.top_kernels.calls IS 'Number of calls. [count]';
COMMENT ON COLUMN v1.top_kernels.total_ns IS 'Sum of durations. [ns]';
COMMENT ON COLUMN v1.top_kernels.share_percent IS 'Share of the total time of all kernels in the answer (with --by: in the group). [percent]';
COMMENT ON COLUMN v1.top_kernels.avg_ns IS 'Mean duration. [ns]';
COMMENT ON COLUMN v1.top_kernels.median_ns IS 'Median duration, mean of the middle two. [ns]';
COMMENT ON COLUMN v1.top_kernels.min_ns IS 'Shortest duration. [ns]';
COMMENT ON COLUMN v1.top_kernels.max_ns IS 'Longest duration. [ns]';
COMMENT ON COLUMN v1.top_kernels.stddev_ns IS 'Sample standard deviation of durations, 0 for one call. [ns]';
COMMENT ON COLUMN v1.top_kernels.short_name IS 'Kernel name without return type, namespaces, template arguments and parameters, like nsys''s shortName.';
