-- Which batch, M, N and K has an operator that is a matrix product, by its name and its input shapes (JSON text)? NULL for
-- other operators and for shapes that do not fit. Operators that add a third matrix have it first.
-- LAMBDA factors: v1._matmul_size is long, and would be planned once for each of the two forms.
CREATE MACRO v1._operator_matmul(op_name, input_dims) AS list_transform(
    [CASE
        WHEN op_name IN (
            'aten::mm', 'aten::bmm', 'aten::matmul', 'aten::linear', 'aten::mv', 'aten::dot', 'aten::_int_mm',
            'aten::_scaled_mm'
        )
            THEN TRY_CAST(TRY_CAST(input_dims AS JSON) AS BIGINT[][])
        WHEN op_name IN (
            'aten::addmm', 'aten::addmm_', 'aten::_addmm_activation', 'aten::baddbmm', 'aten::baddbmm_', 'aten::addbmm',
            'aten::addmv'
        )
            THEN TRY_CAST(TRY_CAST(input_dims AS JSON) AS BIGINT[][])[2:]
    END],
    LAMBDA factors: v1._matmul_size(op_name, factors[1], factors[2])
)[1];

COMMENT ON MACRO v1._operator_matmul IS 'Batch, M, N and K of an operator that is a matrix product; NULL for others.';
