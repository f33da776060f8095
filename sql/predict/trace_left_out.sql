-- Which operators would the models know if they were of another element type? Grain: element type.
SELECT
    o.dtype,
    count(DISTINCT (o.operator, o.pass, o.input_dims)) AS operators,
    sum(o.measured_ns) / 1e6 AS measured_ms
FROM operator_prediction AS o
WHERE o.is_other_type
GROUP BY o.dtype
ORDER BY measured_ms DESC, o.dtype NULLS LAST;
