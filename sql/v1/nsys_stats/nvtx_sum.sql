-- The report nvtx_sum of nsys stats, with its columns, units and rounding.
-- Grain: range × style. Ranges still open end at the last recorded time of ranges, as in nsys stats.
CREATE VIEW v1.nvtx_sum AS
WITH sums AS (
    SELECT
        /* by r */
        r.nsys_name,
        r.nsys_style,
        v1._nsys_summary(count(*), r.duration_ns) AS stats
    FROM v1._nsys_range AS r /* join r */
    WHERE true /* filter r */
    GROUP BY /* by r */ r.nsys_name, r.nsys_style
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
    nsys_style AS "Style",
    nsys_name AS "Range"
FROM sums;

COMMENT ON VIEW v1.nvtx_sum IS 'Time of ranges on the CPU by name, in the format of nsys stats. Grain: range × style.';
COMMENT ON COLUMN v1.nvtx_sum."Time (%)" IS 'Share of the total of all rows (with --by: in the group), rounded to 0.1. [percent]';
COMMENT ON COLUMN v1.nvtx_sum."Total Time (ns)" IS 'Sum of durations. [ns]';
COMMENT ON COLUMN v1.nvtx_sum."Instances" IS 'Number of instances. [count]';
COMMENT ON COLUMN v1.nvtx_sum."Avg (ns)" IS 'Mean duration, rounded to 0.1. [ns]';
COMMENT ON COLUMN v1.nvtx_sum."Med (ns)" IS 'Median duration, mean of the middle two, rounded to 0.1. [ns]';
COMMENT ON COLUMN v1.nvtx_sum."Min (ns)" IS 'Shortest duration. [ns]';
COMMENT ON COLUMN v1.nvtx_sum."Max (ns)" IS 'Longest duration. [ns]';
COMMENT ON COLUMN v1.nvtx_sum."StdDev (ns)" IS 'Sample standard deviation of durations, 0 for one, rounded to 0.1. [ns]';
COMMENT ON COLUMN v1.nvtx_sum."Style" IS 'PushPop, StartEnd, or User (record_function).';
COMMENT ON COLUMN v1.nvtx_sum."Range" IS 'Domain and text of the range, joined by a colon; only the text in the default domain.';
