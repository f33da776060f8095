-- Which element type has each distinct call of an operator? Grain: row of v1._op_spelling. That of the operand that the
-- operator's formula names, else of the first floating-point tensor, else of the first tensor.
CREATE VIEW v1._signature_dtype AS
SELECT
    c.signature_no, c.name, c.input_dims, c.input_types, c.batch, c.m, c.n, c.k, c.flops, c.bytes,
    CASE WHEN regexp_matches(c.dtype, '^(fp|bf|u?int)[0-9]') THEN c.dtype ELSE y.dtype END AS element_type
FROM v1._signature_cost AS c
LEFT JOIN v1._element_type AS y ON y.input_types = c.input_types;
