-- The report cuda_gpu_mem_size_sum of nsys stats, with its columns, units (MB = 1,000,000 bytes) and rounding.
-- Grain: kind of memory operation.
CREATE VIEW v1.cuda_gpu_mem_size_sum AS
WITH sums AS (
    SELECT
        /* by e */
        e.name,
        count(e.bytes) AS instances,
        sum(e.bytes) AS total,
        sum(e.bytes::HUGEINT * e.bytes) AS squares,
        median(e.bytes) AS median,
        min(e.bytes) AS least,
        max(e.bytes) AS most
    FROM v1._gpu_event AS e /* join e */
    WHERE e.kind IN ('memcpy', 'memset') AND e.bytes IS NOT NULL /* filter e */
    GROUP BY /* by e */ e.name
)
SELECT
    /* by */
    round(total / 1e6, 3) AS "Total (MB)",
    instances AS "Count",
    round(total / instances / 1e6, 3) AS "Avg (MB)",
    round(median / 1e6, 3) AS "Med (MB)",
    round(least / 1e6, 3) AS "Min (MB)",
    round(most / 1e6, 3) AS "Max (MB)",
    round(v1._sample_stddev(instances, total, squares) / 1e6, 3) AS "StdDev (MB)",
    name AS "Operation"
FROM sums;

COMMENT ON VIEW v1.cuda_gpu_mem_size_sum IS 'Sizes of copies and memsets by kind, in the format of nsys stats. Grain: kind of memory operation.';
COMMENT ON COLUMN v1.cuda_gpu_mem_size_sum."Total (MB)" IS 'Sum of sizes, rounded to 0.001. [MB]';
COMMENT ON COLUMN v1.cuda_gpu_mem_size_sum."Count" IS 'Number of operations. [count]';
COMMENT ON COLUMN v1.cuda_gpu_mem_size_sum."Avg (MB)" IS 'Mean size, rounded to 0.001. [MB]';
COMMENT ON COLUMN v1.cuda_gpu_mem_size_sum."Med (MB)" IS 'Median size, rounded to 0.001. [MB]';
COMMENT ON COLUMN v1.cuda_gpu_mem_size_sum."Min (MB)" IS 'Smallest size, rounded to 0.001. [MB]';
COMMENT ON COLUMN v1.cuda_gpu_mem_size_sum."Max (MB)" IS 'Largest size, rounded to 0.001. [MB]';
COMMENT ON COLUMN v1.cuda_gpu_mem_size_sum."StdDev (MB)" IS 'Sample standard deviation of sizes, 0 for one, rounded to 0.001. [MB]';
COMMENT ON COLUMN v1.cuda_gpu_mem_size_sum."Operation" IS 'Kind of copy, or memset.';
