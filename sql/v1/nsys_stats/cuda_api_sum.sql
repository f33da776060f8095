-- The report cuda_api_sum of nsys stats, with its columns, units and rounding.
-- Grain: name of the API call.
CREATE VIEW v1.cuda_api_sum AS
WITH sums AS (
    SELECT
        /* by l */
        l.name,
        v1._nsys_summary(count(*), l.duration_ns) AS stats
    FROM v1._launch AS l
    WHERE true /* filter l */
    GROUP BY /* by l */ l.name
)
SELECT
    /* by */
    round(100.0 * stats.total / nullif(sum(stats.total) OVER (/* partition */), 0), 1) AS "Time (%)",
    stats.total::BIGINT AS "Total Time (ns)",
    stats.instances AS "Num Calls",
    stats.mean AS "Avg (ns)",
    stats.median AS "Med (ns)",
    stats.least AS "Min (ns)",
    stats.most AS "Max (ns)",
    stats.stddev AS "StdDev (ns)",
    name AS "Name"
FROM sums;

COMMENT ON VIEW v1.cuda_api_sum IS 'Time of runtime and driver API calls by name, in the format of nsys stats. Grain: name of the API call.';
COMMENT ON COLUMN v1.cuda_api_sum."Time (%)" IS 'Share of the total of all rows (with --by: in the group), rounded to 0.1. [percent]';
COMMENT ON COLUMN v1.cuda_api_sum."Total Time (ns)" IS 'Sum of durations. [ns]';
COMMENT ON COLUMN v1.cuda_api_sum."Num Calls" IS 'Number of calls. [count]';
COMMENT ON COLUMN v1.cuda_api_sum."Avg (ns)" IS 'Mean duration, rounded to 0.1. [ns]';
COMMENT ON COLUMN v1.cuda_api_sum."Med (ns)" IS 'Median duration, mean of the middle two, rounded to 0.1. [ns]';
COMMENT ON COLUMN v1.cuda_api_sum."Min (ns)" IS 'Shortest duration. [ns]';
COMMENT ON COLUMN v1.cuda_api_sum."Max (ns)" IS 'Longest duration. [ns]';
COMMENT ON COLUMN v1.cuda_api_sum."StdDev (ns)" IS 'Sample standard deviation of durations, 0 for one, rounded to 0.1. [ns]';
COMMENT ON COLUMN v1.cuda_api_sum."Name" IS 'Name of the call.';
