-- FLOPs and bytes of an operator call, from its shapes. Grain: row of v1._op_signature with a formula.
CREATE VIEW v1._op_work AS
SELECT p.name, p.input_dims, p.input_types, p.concrete_inputs, p.batch, p.m, p.n, p.k, p.flops, p.model_flops, p.bytes
FROM v1._product_work AS p
UNION ALL
SELECT c.name, c.input_dims, c.input_types, c.concrete_inputs, c.batch, c.m, c.n, c.k, c.flops, c.model_flops, c.bytes
FROM v1._convolution_work AS c
UNION ALL
SELECT a.name, a.input_dims, a.input_types, a.concrete_inputs, a.batch, a.m, a.n, a.k, a.flops, a.model_flops, a.bytes
FROM v1._attention_work AS a
UNION ALL
SELECT e.name, e.input_dims, e.input_types, e.concrete_inputs, e.batch, e.m, e.n, e.k, e.flops, e.model_flops, e.bytes
FROM v1._elementwise_work AS e;
