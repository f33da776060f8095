-- The report cuda_gpu_mem_time_sum of nsys stats, with its columns, units and rounding.
-- Grain: kind of memory operation.
CREATE VIEW v1.cuda_gpu_mem_time_sum AS
WITH sums AS (
    SELECT
        /* by e */
        e.name,
        count(*) AS instances,
        sum(e.duration_ns) AS total,
        sum(e.duration_ns::HUGEINT * e.duration_ns) AS squares,
        median(e.duration_ns) AS median,
        min(e.duration_ns) AS least_ns,
        max(e.duration_ns) AS most_ns
    FROM v1._gpu_event AS e /* join e */
    WHERE e.kind IN ('memcpy', 'memset') /* filter e */
    GROUP BY /* by e */ e.name
)
SELECT
    /* by */
    round(100.0 * total / nullif(sum(total) OVER (/* partition */), 0), 1) AS "Time (%)",
    total::BIGINT AS "Total Time (ns)",
    instances AS "Count",
    (20 * total + instances) // (2 * instances) / 10 AS "Avg (ns)",
    round(median, 1) AS "Med (ns)",
    least_ns AS "Min (ns)",
    most_ns AS "Max (ns)",
    round(CASE WHEN instances = 1 THEN 0.0 ELSE sqrt((
        squares - total // instances * (total + total % instances) - (total % instances) ** 2 / instances
    ) / (instances - 1)) END, 1) AS "StdDev (ns)",
    name AS "Operation"
FROM sums;

COMMENT ON VIEW v1.cuda_gpu_mem_time_sum IS 'Time of copies and memsets by kind, as nsys stats prints it. Grain: kind of memory operation.';
COMMENT ON COLUMN v1.cuda_gpu_mem_time_sum."Time (%)" IS 'Share of the total of all rows (in the --by group), rounded to 0.1. [percent]';
COMMENT ON COLUMN v1.cuda_gpu_mem_time_sum."Total Time (ns)" IS 'Sum of durations. [ns]';
COMMENT ON COLUMN v1.cuda_gpu_mem_time_sum."Count" IS 'Number of operations. [count]';
COMMENT ON COLUMN v1.cuda_gpu_mem_time_sum."Avg (ns)" IS 'Mean duration, rounded to 0.1. [ns]';
COMMENT ON COLUMN v1.cuda_gpu_mem_time_sum."Med (ns)" IS 'Median duration, mean of the middle two, rounded to 0.1. [ns]';
COMMENT ON COLUMN v1.cuda_gpu_mem_time_sum."Min (ns)" IS 'Shortest duration. [ns]';
COMMENT ON COLUMN v1.cuda_gpu_mem_time_sum."Max (ns)" IS 'Longest duration. [ns]';
COMMENT ON COLUMN v1.cuda_gpu_mem_time_sum."StdDev (ns)" IS 'Sample standard deviation of durations, 0 for one, rounded to 0.1. [ns]';
COMMENT ON COLUMN v1.cuda_gpu_mem_time_sum."Operation" IS 'Kind of copy, or memset.';
