-- FLOPs and bytes of each operator, from its shapes. Grain: operator instance. Numbers too large for a BIGINT come from
-- impossible sizes and become NULL.
CREATE VIEW v1._op_cost AS
SELECT
    o.capture_id, o.op_id, o.name, o.input_dims,
    v1._short_dtype(TRY_CAST(o.input_types AS VARCHAR[])[coalesce(f.x, f.y)]) AS dtype,
    TRY_CAST(w.batch AS BIGINT) AS batch,
    TRY_CAST(w.m AS BIGINT) AS m,
    TRY_CAST(w.n AS BIGINT) AS n,
    TRY_CAST(w.k AS BIGINT) AS k,
    TRY_CAST(w.flops AS BIGINT) AS flops,
    TRY_CAST(w.model_flops AS BIGINT) AS model_flops,
    TRY_CAST(w.bytes AS BIGINT) AS bytes
FROM main.op AS o
LEFT JOIN v1._op_formula AS f ON f.name = o.name
LEFT JOIN v1._op_work AS w
    ON w.name = o.name
    AND w.input_dims = o.input_dims
    AND w.input_types IS NOT DISTINCT FROM o.input_types
    AND w.concrete_inputs IS NOT DISTINCT FROM o.concrete_inputs;
