-- Which kernels take the time? As nsys stats cuda_gpu_kern_sum.
-- Grain: kernel name. A name has two rows only if some of its calls were recorded with collective arguments and the
-- name alone would not make them collectives. The deviation comes from whole-number sums, exact for every row order:
-- with mean m = total // calls, the squares about m are squares - m * (total + total % calls).
CREATE VIEW v1.top_kernels AS
WITH sums AS (
    SELECT
        /* by e */
        e.name,
        e.class,
        count(*) AS calls,
        sum(e.duration_ns) AS total_ns,
        sum(e.duration_ns::HUGEINT * e.duration_ns) AS squares,
        median(e.duration_ns) AS median_ns,
        min(e.duration_ns) AS min_ns,
        max(e.duration_ns) AS max_ns
    FROM v1._gpu_event AS e /* join e */
    WHERE e.kind = 'kernel' /* filter e */
    GROUP BY /* by e */ e.name, e.class
)
SELECT
    /* by */
    name,
    class,
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
FROM sums;

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
