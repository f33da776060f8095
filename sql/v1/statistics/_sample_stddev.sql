-- Sample standard deviation of n integers from their sum and sum of squares.
-- stddev_samp() adds doubles, so its last digits depend on the row order. Here everything up to the square root is
-- integer: with total = n * q + r, the squares minus total² / n are squares - q * (total + r) - r² / n, and no product
-- exceeds a HUGEINT. 0 for one number, NULL for none.
CREATE MACRO v1._sample_stddev(n, total, squares) AS
CASE WHEN n = 1 THEN 0.0 WHEN n > 1 THEN sqrt((
    (squares - total::HUGEINT // n * (total::HUGEINT + total % n))::DOUBLE - ((total % n) ** 2)::DOUBLE / n
) / (n - 1)) END;

COMMENT ON MACRO v1._sample_stddev IS 'Sample standard deviation of n whole numbers from their sum and sum of squares, the same for every row order; 0 for one, NULL for none.';
