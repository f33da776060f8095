-- Which M, N and K has the matrix product of an operator, by the shapes of its inputs? a and b are the shapes of the two
-- factors: M × K and K × N; linear takes its weight as N × K. Leading dimensions of a count into M where b has none,
-- and as batch where b has them too. NULL where a shape is missing or the two disagree in K.
CREATE MACRO v1._matmul_size(op_name, a, b) AS
CASE
    WHEN op_name = 'aten::linear' AND array_length(a) >= 1 AND array_length(b) = 2 AND a[-1] = b[2]
        THEN {'batch': 1, 'm': coalesce(TRY_CAST(list_product(a[:-2]) AS BIGINT), 1), 'n': b[1], 'k': a[-1]}
    WHEN array_length(a) >= 1 AND array_length(b) = 1 AND a[-1] = b[1]
        THEN {'batch': 1, 'm': coalesce(TRY_CAST(list_product(a[:-2]) AS BIGINT), 1), 'n': 1, 'k': a[-1]}
    WHEN array_length(a) >= 1 AND array_length(b) = 2 AND a[-1] = b[1]
        THEN {'batch': 1, 'm': coalesce(TRY_CAST(list_product(a[:-2]) AS BIGINT), 1), 'n': b[2], 'k': a[-1]}
    WHEN array_length(a) >= 2 AND array_length(b) >= 3 AND a[-1] = b[-2]
        THEN {
            'batch': greatest(
                coalesce(TRY_CAST(list_product(a[:-3]) AS BIGINT), 1), TRY_CAST(list_product(b[:-3]) AS BIGINT)),
            'm': a[-2], 'n': b[-1], 'k': a[-1]
        }
END;

COMMENT ON MACRO v1._matmul_size IS 'Batch, M, N and K of a matrix product, from the shapes of its two factors.';
