-- How much of the operators' time do the models cover? The summary of `tracedb predict --trace`; one row, in ms and percent.
SELECT
    coalesce(sum(o.measured_ns), 0) / 1e6 AS measured_ms,
    coalesce((SELECT sum(t.busy_ns) FROM v1.gpu_timeline AS t), 0) / 1e6 AS busy_ms,
    coalesce(sum(o.measured_ns) FILTER (o.call_ns IS NOT NULL), 0) / 1e6 AS known_ms,
    coalesce(sum(o.call_ns * o.calls ORDER BY o.call_ns, o.calls), 0) / 1e6 AS predicted_ms,
    100 * known_ms / nullif(measured_ms, 0) AS known_percent
FROM operator_prediction AS o;
