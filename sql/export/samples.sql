-- The samples of operators, a line for each shape, with the columns of the sampling files of estimate-train-time.
-- In:  v1.operator_samples. Out: temp view sample_line. A time is the trimmed mean of spans where iterations were recorded,
--      which is what those files hold, else the one of the sample. Repeats of a shape are lines of their own, in the order
--      of captures; the k-th forward time stands beside the k-th backward one.
CREATE OR REPLACE TEMP VIEW sample_line AS
WITH times AS (
    SELECT
        coalesce(s.gpu, 'unknown') AS gpu, s.operator, coalesce(s.dtype, 'fp32') AS dtype, s.pass, s.shape,
        coalesce(s.span_trimmed_mean_ns, s.target_ns) / 1e3 AS time_us,
        row_number() OVER (
            PARTITION BY s.gpu, s.operator, s.dtype, s.pass, list_sort(map_entries(s.shape))
            ORDER BY s.capture_id, s.target_ns
        ) AS repeat
    FROM v1.operator_samples AS s
    WHERE s.target_ns > 0
)
SELECT
    t.gpu, t.operator, t.dtype,
    any_value(t.shape) AS shape,
    max(t.time_us) FILTER (t.pass = 'fwd') AS forward_us,
    max(t.time_us) FILTER (t.pass = 'bwd') AS backward_us,
    max(t.time_us) FILTER (t.pass NOT IN ('fwd', 'bwd')) AS whole_us,
    bool_or(t.pass = 'comm') AS is_collective
FROM times AS t
GROUP BY t.gpu, t.operator, t.dtype, list_sort(map_entries(t.shape)), t.repeat
ORDER BY t.gpu, t.operator, t.dtype, map_values(any_value(t.shape)), t.repeat;
