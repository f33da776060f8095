-- FLOPs and bytes of a matrix product. Grain: row of v1._op_signature of a product.
-- FLOPs are 2·batch·m·n·k, without the summand of addmm. Bytes: each operand once, as with a perfect cache. In grouped
-- products all rows count, including those beyond the last offset, because offsets are data; a product grouped over k
-- (two factors without groups) has one result per group.
CREATE VIEW v1._product_work AS
WITH sized AS (
    SELECT
        s.*,
        CASE
            WHEN s.family <> 'grouped' THEN v1._matmul_size(s.name, s.x, s.y)
            WHEN s.x[-1] = s.y[-2] THEN {
                'batch': CASE WHEN len(s.x) = 3 AND len(s.y) = 3 THEN s.x[1] ELSE 1 END,
                'm': s.x[-2], 'n': s.y[-1], 'k': s.x[-1]
            }
        END AS p,
        CASE WHEN s.family = 'grouped' AND len(s.x) = 2 AND len(s.y) = 2
            THEN s.sizes[CASE s.name WHEN 'aten::_grouped_mm' THEN 3 ELSE 5 END][1]
            ELSE 1
        END AS results
    FROM v1._op_signature AS s
    WHERE s.family IN ('product', 'grouped')
)
SELECT
    c.signature_no,
    c.p.batch AS batch,
    c.p.m AS m, c.p.n AS n, c.p.k AS k,
    2::DOUBLE * c.p.batch * c.p.m * c.p.n * c.p.k AS flops,
    flops AS model_flops,
    v1._tensor_bytes(c.x, c.x_type) + v1._tensor_bytes(c.y, c.y_type)
        + 1::DOUBLE * c.p.batch * c.results * c.p.m * c.p.n * CASE
            WHEN c.name LIKE 'aten::_scaled%' THEN
                -- PyTorch's numbers of its element types
                CASE c.flag_text WHEN '6' THEN 4 WHEN '5' THEN 2 WHEN '15' THEN 2 WHEN '24' THEN 1 WHEN '23' THEN 1 END
            WHEN c.name = 'aten::_int_mm' THEN 4
            ELSE v1._element_bytes(v1._plain_type(c.x_type))
        END
        + CASE WHEN c.z_type IS NULL OR c.z_type = '' THEN 0 ELSE v1._tensor_bytes(c.z, c.z_type) END AS bytes
FROM sized AS c
WHERE c.p IS NOT NULL;
