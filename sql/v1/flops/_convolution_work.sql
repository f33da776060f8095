-- What does a convolution compute and move? Grain: row of v1._op_signature of a convolution.
-- FLOPs are 2·output·(input channels / groups)·kernel, which is 2·batch·(positions of the output)·(elements of the
-- weight), since the weight is [output channels, input channels / groups, kernel…]; as a product: m positions, n output
-- channels, k the rest of the weight. The backward operator does the same work once for each gradient that its mask
-- asks for (input, weight). Where padding, stride and dilation were not recorded, the output's size is not known.
-- Transposed, positions of the input take the place of those of the output. Bytes: each tensor read or written once.
CREATE VIEW v1._convolution_work AS
WITH forward AS (
    SELECT
        s.*,
        TRY_CAST(s.scalars[s.flag] AS BIGINT[]) AS padding,
        TRY_CAST(s.scalars[s.flag + 1] AS BIGINT[]) AS stride,
        TRY_CAST(s.scalars[s.flag + 2] AS BIGINT[]) AS dilation
    FROM v1._op_signature AS s
    WHERE s.family = 'convolution' AND len(s.x) = len(s.y) AND len(s.x) BETWEEN 3 AND 5
),
output AS (
    SELECT
        f.*,
        1::DOUBLE * v1._output_size(f.x[3], f.y[3], f.padding[1], f.stride[1], f.dilation[1])
            * CASE WHEN len(f.x) > 3 THEN v1._output_size(
                f.x[4], f.y[4],
                coalesce(f.padding[2], f.padding[1]), coalesce(f.stride[2], f.stride[1]), coalesce(f.dilation[2], f.dilation[1]))
                ELSE 1 END
            * CASE WHEN len(f.x) > 4 THEN v1._output_size(
                f.x[5], f.y[5],
                coalesce(f.padding[3], f.padding[1]), coalesce(f.stride[3], f.stride[1]), coalesce(f.dilation[3], f.dilation[1]))
                ELSE 1 END AS positions
    FROM forward AS f
),
backward AS (
    SELECT
        s.*,
        CASE
            WHEN s.flag IS NULL THEN [true, false]
            ELSE TRY_CAST(s.flag_text AS BOOLEAN[])
        END AS mask,
        CASE WHEN s.scalars[8] = 'True' AND s.flag IS NOT NULL THEN s.x ELSE s.z END AS placed
    FROM v1._op_signature AS s
    WHERE s.family = 'convolution_backward'
)
SELECT
    o.signature_no,
    1 AS batch,
    o.x[1] * o.positions AS m, o.y[1] AS n, v1._element_count(o.y[2:]) AS k,
    2::DOUBLE * o.x[1] * o.positions * v1._element_count(o.y) AS flops,
    flops AS model_flops,
    v1._tensor_bytes(o.x, o.x_type) + v1._tensor_bytes(o.y, o.y_type)
        + o.x[1] * o.positions * o.y[1] * v1._element_bytes(v1._plain_type(o.x_type)) AS bytes
FROM output AS o
UNION ALL
SELECT
    b.signature_no,
    1 AS batch,
    b.placed[1] * v1._element_count(b.placed[3:]) AS m, b.y[1] AS n, v1._element_count(b.y[2:]) AS k,
    2::DOUBLE * b.placed[1] * v1._element_count(b.placed[3:]) * v1._element_count(b.y) * (b.mask[1]::INTEGER + b.mask[2]::INTEGER)
        AS flops,
    flops AS model_flops,
    v1._tensor_bytes(b.z, b.z_type)
        + (b.mask[1]::INTEGER + b.mask[2]::INTEGER) * (v1._tensor_bytes(b.x, b.x_type) + v1._tensor_bytes(b.y, b.y_type))
        AS bytes
FROM backward AS b;
