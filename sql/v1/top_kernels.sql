-- Which kernels take the time? As nsys stats cuda_gpu_kern_sum.
-- Grain: kernel name. A name has two rows only if some of its calls were recorded with collective arguments and the
-- name alone would not make them collectives. The deviation comes from whole-number sums, exact for every row order:
-- with mean m = total // calls, the squares about m are squares - m * (total + total % calls).
-- Why those calls are summed apart, and the class is looked up at the end: DuckDB groups by a single text column through
-- the numbers of its dictionary, by two columns through the texts themselves, which takes twice as long.
CREATE VIEW v1.top_kernels AS
WITH kernel_class AS (
    SELECT n.name, n.class, n.rule_source
    FROM v1._kernel_class AS n
),
argued_name AS (
    SELECT DISTINCT e.name
    FROM main.kernel_event AS e
    INNER JOIN kernel_class AS n ON n.name = e.name
    WHERE e.kind = 'kernel' AND e.collective IS NOT NULL AND n.class <> 'collective' AND n.rule_source <> 'user'
),
kernels AS (
    SELECT
        /* by e */
        e.name,
        e.duration_ns,
        a.name IS NOT NULL AS is_argued
    FROM v1._unclassed_event AS e /* join e */
    LEFT JOIN argued_name AS a ON a.name = CASE WHEN e.collective IS NOT NULL THEN e.name END
    WHERE e.kind = 'kernel' /* filter e */
),
sums AS (
    SELECT
        /* by */
        k.name,
        false AS is_argued,
        count(*) AS calls,
        sum(k.duration_ns) AS total_ns,
        sum(k.duration_ns::HUGEINT * k.duration_ns) AS squares,
        median(k.duration_ns) AS median_ns,
        min(k.duration_ns) AS min_ns,
        max(k.duration_ns) AS max_ns
    FROM kernels AS k
    WHERE NOT k.is_argued
    GROUP BY /* by */ k.name
    UNION ALL
    SELECT
        /* by */
        k.name,
        true AS is_argued,
        count(*) AS calls,
        sum(k.duration_ns) AS total_ns,
        sum(k.duration_ns::HUGEINT * k.duration_ns) AS squares,
        median(k.duration_ns) AS median_ns,
        min(k.duration_ns) AS min_ns,
        max(k.duration_ns) AS max_ns
    FROM kernels AS k
    WHERE k.is_argued
    GROUP BY /* by */ k.name
)
SELECT
    /* by */
    s.name,
    CASE WHEN s.is_argued THEN 'collective' ELSE n.class END AS class,
    calls,
    total_ns::BIGINT AS total_ns,
    100.0 * total_ns / nullif(sum(total_ns) OVER (/* partition */), 0) AS share_percent,
    total_ns / calls AS avg_ns,
    median_ns,
    min_ns,
    max_ns,
    CASE WHEN calls = 1 THEN 0.0 ELSE sqrt((
        squares - total_ns // calls * (total_ns + total_ns % calls) - (total_ns % calls) ** 2 / calls
    ) / (calls - 1)) END AS stddev_ns
FROM sums AS s
LEFT JOIN kernel_class AS n ON n.name = s.name;

COMMENT ON VIEW v1.top_kernels IS 'Time per kernel name, as nsys stats cuda_gpu_kern_sum. Grain: kernel name.';
COMMENT ON COLUMN v1.top_kernels.name IS 'Kernel name as recorded.';
COMMENT ON COLUMN v1.top_kernels.class IS 'Class of the kernel: matmul, collective, elementwise …';
COMMENT ON COLUMN v1.top_kernels.calls IS 'Number of calls.';
COMMENT ON COLUMN v1.top_kernels.total_ns IS 'Sum of durations, in ns.';
COMMENT ON COLUMN v1.top_kernels.share_percent IS 'Share of the summed time of all kernels in the answer (in the --by group), in percent.';
COMMENT ON COLUMN v1.top_kernels.avg_ns IS 'Mean duration, in ns.';
COMMENT ON COLUMN v1.top_kernels.median_ns IS 'Median duration, mean of the middle two, in ns.';
COMMENT ON COLUMN v1.top_kernels.min_ns IS 'Shortest duration, in ns.';
COMMENT ON COLUMN v1.top_kernels.max_ns IS 'Longest duration, in ns.';
COMMENT ON COLUMN v1.top_kernels.stddev_ns IS 'Sample standard deviation of durations, 0 for one call, in ns.';
