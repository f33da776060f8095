-- The report cuda_gpu_sum of nsys stats, with its columns, units and rounding.
-- Grain: category × name. Graph replays recorded as a whole are excluded, as in nsys stats.
CREATE VIEW v1.cuda_gpu_sum AS
WITH sums AS (
    SELECT
        /* by e */
        CASE e.kind WHEN 'kernel' THEN 'CUDA_KERNEL' ELSE 'MEMORY_OPER' END AS category,
        e.name,
        v1._nsys_summary(count(*), e.duration_ns) AS stats
    FROM v1._gpu_event AS e /* join e */
    WHERE e.kind <> 'graph' /* filter e */
    GROUP BY ALL
)
SELECT
    /* by */
    round(100.0 * stats.total / nullif(sum(stats.total) OVER (/* partition */), 0), 1) AS "Time (%)",
    stats.total::BIGINT AS "Total Time (ns)",
    stats.instances AS "Instances",
    stats.mean AS "Avg (ns)",
    stats.median AS "Med (ns)",
    stats.least AS "Min (ns)",
    stats.most AS "Max (ns)",
    stats.stddev AS "StdDev (ns)",
    category AS "Category",
    name AS "Operation"
FROM sums;

COMMENT ON VIEW v1.cuda_gpu_sum IS 'Time of kernels, copies and memsets by name, in the format of nsys stats. Grain: category × name.';
COMMENT ON COLUMN v1.cuda_gpu_sum."Time (%)" IS 'Share of the total of all rows (with --by: in the group), rounded to 0.1. [percent]';
COMMENT ON COLUMN v1.cuda_gpu_sum."Total Time (ns)" IS 'Sum of durations. [ns]';
COMMENT ON COLUMN v1.cuda_gpu_sum."Instances" IS 'Number of operations. [count]';
COMMENT ON COLUMN v1.cuda_gpu_sum."Avg (ns)" IS 'Mean duration, rounded to 0.1. [ns]';
COMMENT ON COLUMN v1.cuda_gpu_sum."Med (ns)" IS 'Median duration, mean of the middle two, rounded to 0.1. [ns]';
COMMENT ON COLUMN v1.cuda_gpu_sum."Min (ns)" IS 'Shortest duration. [ns]';
COMMENT ON COLUMN v1.cuda_gpu_sum."Max (ns)" IS 'Longest duration. [ns]';
COMMENT ON COLUMN v1.cuda_gpu_sum."StdDev (ns)" IS 'Sample standard deviation of durations, 0 for one, rounded to 0.1. [ns]';
COMMENT ON COLUMN v1.cuda_gpu_sum."Category" IS 'CUDA_KERNEL or MEMORY_OPER.';
COMMENT ON COLUMN v1.cuda_gpu_sum."Operation" IS 'Kernel name as recorded, or kind of copy, or memset.';
