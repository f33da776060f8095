-- FLOPs and bytes of each distinct call of an operator, from its shapes. Grain: row of v1._op_spelling. Numbers too large
-- for a BIGINT come from impossible sizes and become NULL.
CREATE VIEW v1._signature_cost AS
SELECT
    s.signature_no, s.spelling_no, s.name, s.input_dims, s.input_types,
    v1._short_dtype(TRY_CAST(s.input_types AS VARCHAR[])[f.first_operand[s.name]]) AS dtype,
    TRY_CAST(w.batch AS BIGINT) AS batch,
    TRY_CAST(w.m AS BIGINT) AS m,
    TRY_CAST(w.n AS BIGINT) AS n,
    TRY_CAST(w.k AS BIGINT) AS k,
    TRY_CAST(w.flops AS BIGINT) AS flops,
    TRY_CAST(w.model_flops AS BIGINT) AS model_flops,
    TRY_CAST(w.bytes AS BIGINT) AS bytes
FROM v1._op_spelling AS s
CROSS JOIN (
    SELECT map_from_entries(list((g.name, coalesce(g.x, g.y)))) AS first_operand
    FROM v1._op_formula AS g
) AS f
LEFT JOIN v1._op_work AS w ON w.signature_no = s.signature_no;
