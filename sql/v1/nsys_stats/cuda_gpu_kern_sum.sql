-- The report cuda_gpu_kern_sum of nsys stats, with its columns, units and rounding.
-- Grain: kernel name. v1.top_kernels has the same numbers unrounded, and the class.
CREATE VIEW v1.cuda_gpu_kern_sum AS
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
    WHERE e.kind = 'kernel' /* filter e */
    GROUP BY /* by e */ e.name
)
SELECT
    /* by */
    round(100.0 * total / nullif(sum(total) OVER (/* partition */), 0), 1) AS "Time (%)",
    total::BIGINT AS "Total Time (ns)",
    instances AS "Instances",
    (20 * total + instances) // (2 * instances) / 10 AS "Avg (ns)",
    round(median, 1) AS "Med (ns)",
    least_ns AS "Min (ns)",
    most_ns AS "Max (ns)",
    round(CASE WHEN instances = 1 THEN 0.0 ELSE sqrt((
        squares - total // instances * (total + total % instances) - (total % instances) ** 2 / instances
    ) / (instances - 1)) END, 1) AS "StdDev (ns)",
    name AS "Name"
FROM sums;

COMMENT ON VIEW v1.cuda_gpu_kern_sum IS 'Time by kernel name, as nsys stats prints it. Grain: kernel name.';
COMMENT ON COLUMN v1.cuda_gpu_kern_sum."Time (%)" IS 'Share of the total of all rows (in the --by group), rounded to 0.1. [percent]';
COMMENT ON COLUMN v1.cuda_gpu_kern_sum."Total Time (ns)" IS 'Sum of durations. [ns]';
COMMENT ON COLUMN v1.cuda_gpu_kern_sum."Instances" IS 'Number of calls. [count]';
COMMENT ON COLUMN v1.cuda_gpu_kern_sum."Avg (ns)" IS 'Mean duration, rounded to 0.1. [ns]';
COMMENT ON COLUMN v1.cuda_gpu_kern_sum."Med (ns)" IS 'Median duration, mean of the middle two, rounded to 0.1. [ns]';
COMMENT ON COLUMN v1.cuda_gpu_kern_sum."Min (ns)" IS 'Shortest duration. [ns]';
COMMENT ON COLUMN v1.cuda_gpu_kern_sum."Max (ns)" IS 'Longest duration. [ns]';
COMMENT ON COLUMN v1.cuda_gpu_kern_sum."StdDev (ns)" IS 'Sample standard deviation of durations, 0 for one, rounded to 0.1. [ns]';
COMMENT ON COLUMN v1.cuda_gpu_kern_sum."Name" IS 'Kernel name as recorded.';
