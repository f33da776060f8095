-- The report cuda_api_sum of nsys stats, with its columns, units and rounding.
-- Grain: name of the API call.
CREATE VIEW v1.cuda_api_sum AS
WITH sums AS (
    SELECT
        /* by l */
        l.name,
        count(*) AS instances,
        sum(l.duration_ns) AS total,
        sum(l.duration_ns::HUGEINT * l.duration_ns) AS squares,
        median(l.duration_ns) AS median,
        min(l.duration_ns) AS least_ns,
        max(l.duration_ns) AS most_ns
    FROM v1._launch AS l
    WHERE true /* filter l */
    GROUP BY /* by l */ l.name
)
SELECT
    /* by */
    round(100.0 * total / nullif(sum(total) OVER (/* partition */), 0), 1) AS "Time (%)",
    total::BIGINT AS "Total Time (ns)",
    instances AS "Num Calls",
    (20 * total + instances) // (2 * instances) / 10 AS "Avg (ns)",
    round(median, 1) AS "Med (ns)",
    least_ns AS "Min (ns)",
    most_ns AS "Max (ns)",
    round(CASE WHEN instances = 1 THEN 0.0 ELSE sqrt((
        squares - total // instances * (total + total % instances) - (total % instances) ** 2 / instances
    ) / (instances - 1)) END, 1) AS "StdDev (ns)",
    name AS "Name"
FROM sums;

COMMENT ON VIEW v1.cuda_api_sum IS 'Time of runtime and driver API calls by name, as nsys stats prints it. Grain: name of the API call.';
COMMENT ON COLUMN v1.cuda_api_sum."Time (%)" IS 'Share of the total of all rows (in the --by group), rounded to 0.1. [percent]';
COMMENT ON COLUMN v1.cuda_api_sum."Total Time (ns)" IS 'Sum of durations. [ns]';
COMMENT ON COLUMN v1.cuda_api_sum."Num Calls" IS 'Number of calls. [count]';
COMMENT ON COLUMN v1.cuda_api_sum."Avg (ns)" IS 'Mean duration, rounded to 0.1. [ns]';
COMMENT ON COLUMN v1.cuda_api_sum."Med (ns)" IS 'Median duration, mean of the middle two, rounded to 0.1. [ns]';
COMMENT ON COLUMN v1.cuda_api_sum."Min (ns)" IS 'Shortest duration. [ns]';
COMMENT ON COLUMN v1.cuda_api_sum."Max (ns)" IS 'Longest duration. [ns]';
COMMENT ON COLUMN v1.cuda_api_sum."StdDev (ns)" IS 'Sample standard deviation of durations, 0 for one, rounded to 0.1. [ns]';
COMMENT ON COLUMN v1.cuda_api_sum."Name" IS 'Name of the call.';
