-- The report cuda_gpu_kern_gb_sum of nsys stats, with its columns, units and rounding.
-- Grain: kernel name × grid × block. v1.unique_kernels distinguishes kernels further.
CREATE VIEW v1.cuda_gpu_kern_gb_sum AS
WITH sums AS (
    SELECT
        /* by e */
        e.name,
        e.grid_x, e.grid_y, e.grid_z, e.block_x, e.block_y, e.block_z,
        v1._nsys_summary(count(*), e.duration_ns) AS stats
    FROM v1._gpu_event AS e /* join e */
    WHERE e.kind = 'kernel' /* filter e */
    GROUP BY /* by e */ e.name, e.grid_x, e.grid_y, e.grid_z, e.block_x, e.block_y, e.block_z
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
    format('{:4d} {:4d} {:4d}', grid_x, grid_y, grid_z) AS "GridXYZ",
    format('{:4d} {:4d} {:4d}', block_x, block_y, block_z) AS "BlockXYZ",
    name AS "Name"
FROM sums;

COMMENT ON VIEW v1.cuda_gpu_kern_gb_sum IS 'Time by kernel name and launch configuration, in the format of nsys stats. Grain: kernel name × grid × block.';
COMMENT ON COLUMN v1.cuda_gpu_kern_gb_sum."Time (%)" IS 'Share of the total of all rows (with --by: in the group), rounded to 0.1. [percent]';
COMMENT ON COLUMN v1.cuda_gpu_kern_gb_sum."Total Time (ns)" IS 'Sum of durations. [ns]';
COMMENT ON COLUMN v1.cuda_gpu_kern_gb_sum."Instances" IS 'Number of calls. [count]';
COMMENT ON COLUMN v1.cuda_gpu_kern_gb_sum."Avg (ns)" IS 'Mean duration, rounded to 0.1. [ns]';
COMMENT ON COLUMN v1.cuda_gpu_kern_gb_sum."Med (ns)" IS 'Median duration, mean of the middle two, rounded to 0.1. [ns]';
COMMENT ON COLUMN v1.cuda_gpu_kern_gb_sum."Min (ns)" IS 'Shortest duration. [ns]';
COMMENT ON COLUMN v1.cuda_gpu_kern_gb_sum."Max (ns)" IS 'Longest duration. [ns]';
COMMENT ON COLUMN v1.cuda_gpu_kern_gb_sum."StdDev (ns)" IS 'Sample standard deviation of durations, 0 for one, rounded to 0.1. [ns]';
COMMENT ON COLUMN v1.cuda_gpu_kern_gb_sum."GridXYZ" IS 'Grid size, x y z. [blocks]';
COMMENT ON COLUMN v1.cuda_gpu_kern_gb_sum."BlockXYZ" IS 'Block size, x y z. [threads]';
COMMENT ON COLUMN v1.cuda_gpu_kern_gb_sum."Name" IS 'Kernel name as recorded.';
