-- Which batch, M, N and K has an operator that is a matrix product, by its name and its input shapes (JSON text)? NULL for
-- other operators and for shapes that do not fit. Operators that add a third matrix have it first.
CREATE MACRO v1._operator_matmul(op_name, input_dims) AS
CASE
    WHEN op_name IN (
        'aten::mm', 'aten::bmm', 'aten::matmul', 'aten::linear', 'aten::mv', 'aten::dot', 'aten::_int_mm',
        'aten::_scaled_mm'
    )
        THEN v1._matmul_size(
            op_name,
            TRY_CAST(TRY_CAST(input_dims AS JSON) AS BIGINT[][])[1],
            TRY_CAST(TRY_CAST(input_dims AS JSON) AS BIGINT[][])[2]
        )
    WHEN op_name IN (
        'aten::addmm', 'aten::addmm_', 'aten::_addmm_activation', 'aten::baddbmm', 'aten::baddbmm_', 'aten::addbmm',
        'aten::addmv'
    )
        THEN v1._matmul_size(
            op_name,
            TRY_CAST(TRY_CAST(input_dims AS JSON) AS BIGINT[][])[2],
            TRY_CAST(TRY_CAST(input_dims AS JSON) AS BIGINT[][])[3]
        )
END;

COMMENT ON MACRO v1._operator_matmul IS 'Batch, M, N and K of an operator that is a matrix product; NULL for others.';
