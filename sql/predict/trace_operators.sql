-- The operators of a trace with their predicted times: the rows of `tracedb predict --trace`.
-- Grain: row of operator_prediction, that is, capture × operator × direction × input shapes × element type. call_ns is
-- the predicted time of one call; NULL if no model covers the operator.
SELECT
    o.operator,
    o.pass,
    o.input_dims,
    o.dtype,
    o.calls,
    o.measured_ns,
    o.call_ns * o.calls AS predicted_ns,
    100 * (o.call_ns * o.calls / nullif(o.measured_ns, 0) - 1) AS error_percent,
    o.model
FROM operator_prediction AS o
ORDER BY o.measured_ns DESC, o.operator, o.pass, o.input_dims NULLS LAST, o.dtype NULLS LAST, o.capture_id;
