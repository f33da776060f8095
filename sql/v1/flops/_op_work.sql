-- FLOPs and bytes of an operator call, from its shapes. Grain: row of v1._op_signature with a formula.
CREATE VIEW v1._op_work AS
SELECT p.signature_no, p.batch, p.m, p.n, p.k, p.flops, p.model_flops, p.bytes
FROM v1._product_work AS p
UNION ALL
SELECT c.signature_no, c.batch, c.m, c.n, c.k, c.flops, c.model_flops, c.bytes
FROM v1._convolution_work AS c
UNION ALL
SELECT a.signature_no, a.batch, a.m, a.n, a.k, a.flops, a.model_flops, a.bytes
FROM v1._attention_work AS a
UNION ALL
SELECT e.signature_no, e.batch, e.m, e.n, e.k, e.flops, e.model_flops, e.bytes
FROM v1._elementwise_work AS e;
