-- Bytes moved by an operator with little arithmetic. Grain: row of v1._op_signature of a pointwise operator, a softmax,
-- a norm's forward, a copy or a fill. Each tensor is read or written once. FLOPs are not counted: no two tools agree on
-- those of an exponential, and these operators are memory-bound. Lists of tensors are unknown. Tensors after the operands
-- (flag) are outputs that the caller gave, and count once.
CREATE VIEW v1._elementwise_work AS
WITH read AS (
    SELECT
        s.*,
        coalesce(v1._tensor_bytes(s.sizes[1], s.types[1]), 0)
            + CASE WHEN s.flag < 2 THEN 0 ELSE coalesce(v1._tensor_bytes(s.sizes[2], s.types[2]), 0) END
            + CASE WHEN s.flag < 3 THEN 0 ELSE coalesce(v1._tensor_bytes(s.sizes[3], s.types[3]), 0) END
            + CASE WHEN s.flag < 4 THEN 0 ELSE coalesce(v1._tensor_bytes(s.sizes[4], s.types[4]), 0) END
            + CASE WHEN s.flag < 5 THEN 0 ELSE coalesce(v1._tensor_bytes(s.sizes[5], s.types[5]), 0) END AS input_bytes,
        greatest(
            v1._element_bytes(v1._plain_type(s.types[1])),
            CASE WHEN s.sizes[2] <> [] THEN v1._element_bytes(v1._plain_type(s.types[2])) END) AS element_bytes
    FROM v1._op_signature AS s
    WHERE s.family IN ('pointwise', 'in_place', 'move')
        AND len(s.x) <= 6
        AND NOT regexp_matches(s.input_types, 'TensorList|GenericList')
)
SELECT
    r.signature_no,
    NULL::BIGINT AS batch,
    NULL::BIGINT AS m, NULL::BIGINT AS n, NULL::BIGINT AS k,
    NULL::DOUBLE AS flops, NULL::DOUBLE AS model_flops,
    r.input_bytes + CASE r.family
        WHEN 'move' THEN 0
        WHEN 'in_place' THEN v1._tensor_bytes(r.x, r.x_type)
        ELSE 1::DOUBLE * v1._broadcast_size(r.sizes, 1) * v1._broadcast_size(r.sizes, 2) * v1._broadcast_size(r.sizes, 3)
            * v1._broadcast_size(r.sizes, 4) * v1._broadcast_size(r.sizes, 5) * v1._broadcast_size(r.sizes, 6)
            * r.element_bytes
    END AS bytes
FROM read AS r
WHERE v1._element_bytes(v1._plain_type(r.x_type)) IS NOT NULL;
