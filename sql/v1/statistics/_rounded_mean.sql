-- total / n rounded to one decimal, halves up, as nsys stats prints means.
-- Why not round(total / n, 1): the quotient is a double, and one that lies a little below a half would be rounded down.
-- Ten times the mean, rounded, is floor(10 * total / n + 1/2) = (20 * total + n) // (2 * n) for a total of 0 or more.
-- NULL for no numbers.
CREATE MACRO v1._rounded_mean(total, n) AS (20 * total + n) // nullif(2 * n, 0) / 10;

COMMENT ON MACRO v1._rounded_mean IS 'Mean of n whole numbers from their sum, rounded to 0.1, halves up; NULL for none.';
