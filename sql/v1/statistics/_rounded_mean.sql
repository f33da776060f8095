-- total / n rounded half up to one decimal, as nsys stats prints means.
-- round(total / n, 1) would be wrong: the quotient is a double, and one slightly below a half would be rounded down.
-- Ten times the mean, rounded, is floor(10 * total / n + 1/2) = (20 * total + n) // (2 * n) for total >= 0.
-- NULL without numbers.
CREATE MACRO v1._rounded_mean(total, n) AS (20 * total + n) // nullif(2 * n, 0) / 10;

COMMENT ON MACRO v1._rounded_mean IS 'Mean of n whole numbers from their sum, rounded to 0.1, halves up; NULL for none.';
