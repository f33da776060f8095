-- FLOPs and bytes of each operator, from its shapes. Grain: operator instance.
CREATE VIEW v1._op_cost AS
SELECT
    o.capture_id, o.op_id, c.name, c.input_dims, c.dtype,
    c.batch, c.m, c.n, c.k, c.flops, c.model_flops, c.bytes
FROM v1._op_number AS o
LEFT JOIN v1._signature_cost AS c ON c.signature_no = o.signature_no;
