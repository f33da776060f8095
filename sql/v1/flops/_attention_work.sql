-- What does fused attention compute and move? Grain: row of v1._op_signature of attention over whole batches.
-- n queries and m keys a head: the scores take 2·n·m·d, their product with the values 2·n·m·d of it: 4·b·h·n·m·d, half
-- where it is causal. Backward makes four such products (gradients of value, scores, query, key) and the scores anew:
-- 10·b·h·n·m·d, of which a model that kept its scores would need 8 (model_flops). Ragged batches are not known:
-- lengths are data. As a product: batch b·h, m queries, n keys, k the size of a head. Bytes: query, key, value and
-- output once; backward those, the output's gradient and three gradients.
CREATE VIEW v1._attention_work AS
WITH sized AS (
    SELECT
        s.*,
        s.name LIKE '%_backward' AS is_backward,
        CASE
            WHEN s.flag_text IN ('True', '1', '2') THEN 0.5::DOUBLE
            WHEN s.flag_text IN ('False', '0') THEN 1::DOUBLE
        END AS part,
        CASE s.family WHEN 'attention_by_head' THEN s.x[2] ELSE s.x[3] END AS heads,
        CASE s.family WHEN 'attention_by_head' THEN s.x[3] ELSE s.x[2] END AS queries,
        CASE s.family WHEN 'attention_by_head' THEN s.y[3] ELSE s.y[2] END AS keys
    FROM v1._op_signature AS s
    WHERE s.family IN ('attention_by_head', 'attention_by_length')
        AND len(s.x) = 4 AND len(s.y) = 4 AND len(s.z) = 4
),
-- What has cumulative lengths (a tensor after the operands) is a ragged batch. A window (the two scalars after whether it
-- is causal, in flash-attn) leaves scores out.
whole AS (
    SELECT d.*, 2::DOUBLE * d.x[1] * d.heads * d.queries * d.keys * d.part AS pairs
    FROM sized AS d
    WHERE d.x[1] = d.y[1]
        AND len(CASE d.name
            WHEN 'aten::_flash_attention_forward' THEN d.sizes[4]
            WHEN 'aten::_flash_attention_backward' THEN d.sizes[7]
            WHEN 'aten::_efficient_attention_forward' THEN d.sizes[5]
            WHEN 'aten::_efficient_attention_backward' THEN d.sizes[7]
            WHEN 'aten::_cudnn_attention_forward' THEN d.sizes[5]
            WHEN 'aten::_cudnn_attention_backward' THEN d.sizes[10]
            ELSE []
        END) = 0
        AND (NOT starts_with(d.name, 'flash_attn::') OR d.scalars[d.flag + 1:d.flag + 2] = ['-1', '-1'])
)
SELECT
    w.signature_no,
    w.x[1] * w.heads AS batch,
    w.queries AS m, w.keys AS n, w.x[4] AS k,
    CASE WHEN w.is_backward THEN w.pairs * (3 * w.x[4] + 2 * w.z[4]) ELSE w.pairs * (w.x[4] + w.z[4]) END AS flops,
    CASE WHEN w.is_backward THEN w.pairs * 2 * (w.x[4] + w.z[4]) ELSE w.pairs * (w.x[4] + w.z[4]) END AS model_flops,
    CASE WHEN w.is_backward THEN 2 ELSE 1 END * (
        v1._tensor_bytes(w.x, w.x_type) + v1._tensor_bytes(w.y, w.y_type) + v1._tensor_bytes(w.z, w.z_type)
        + 1::DOUBLE * w.x[1] * w.heads * w.queries * w.z[4] * v1._element_bytes(v1._plain_type(w.z_type))) AS bytes
FROM whole AS w;
