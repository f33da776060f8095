-- The report cuda_gpu_mem_time_sum of nsys stats, with its columns, units and rounding.
-- Grain: kind of memory operation.
CREATE VIEW v1.cuda_gpu_mem_time_sum AS
WITH sums AS (
    SELECT
        /* by e */
        e.name,
        v1._nsys_summary(count(*), e.duration_ns) AS stats
    FROM v1._gpu_event AS e /* join e */
    WHERE e.kind IN ('memcpy', 'memset') /* filter e */
    GROUP BY /* by e */ e.name
)
SELECT
    /* by */
    round(100.0 * stats.total / nullif(sum(stats.total) OVER (/* partition */), 0), 1) AS "Time (%)",
    stats.total::BIGINT AS "Total Time (ns)",
    stats.instances AS "Count",
    stats.mean AS "Avg (ns)",
    stats.median AS "Med (ns)",
    stats.least AS "Min (ns)",
    stats.most AS "Max (ns)",
    stats.stddev AS "StdDev (ns)",
    name AS "Operation"
FROM sums;

COMMENT ON VIEW v1.cuda_gpu_mem_time_sum IS 'Time of copies and memsets by kind, in the format of nsys stats. Grain: kind of memory operation.';
COMMENT ON COLUMN v1.cuda_gpu_mem_time_sum."Time (%)" IS 'Share of the total of all rows (with --by: in the group), rounded to 0.1. [percent]';
COMMENT ON COLUMN v1.cuda_gpu_mem_time_sum."Total Time (ns)" IS 'Sum of durations. [ns]';
COMMENT ON COLUMN v1.cuda_gpu_mem_time_sum."Count" IS 'Number of operations. [count]';
COMMENT ON COLUMN v1.cuda_gpu_mem_time_sum."Avg (ns)" IS 'Mean duration, rounded to 0.1. [ns]';
COMMENT ON COLUMN v1.cuda_gpu_mem_time_sum."Med (ns)" IS 'Median duration, mean of the middle two, rounded to 0.1. [ns]';
COMMENT ON COLUMN v1.cuda_gpu_mem_time_sum."Min (ns)" IS 'Shortest duration. [ns]';
COMMENT ON COLUMN v1.cuda_gpu_mem_time_sum."Max (ns)" IS 'Longest duration. [ns]';
COMMENT ON COLUMN v1.cuda_gpu_mem_time_sum."StdDev (ns)" IS 'Sample standard deviation of durations, 0 for one, rounded to 0.1. [ns]';
COMMENT ON COLUMN v1.cuda_gpu_mem_time_sum."Operation" IS 'Kind of copy, or memset.';
