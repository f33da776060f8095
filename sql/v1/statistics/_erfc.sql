-- Complementary error function for x >= 0, which DuckDB lacks.
-- Chebyshev fit by Press et al., Numerical Recipes (erfcc), with t = 2 / (2 + x); the relative error is below 1.2e-7.
CREATE MACRO v1._erfc(x) AS 2 / (2 + x) * exp(
    -x * x - 1.26551223 + 2 / (2 + x) * (1.00002368 + 2 / (2 + x) * (0.37409196 + 2 / (2 + x) * (0.09678418
    + 2 / (2 + x) * (-0.18628806 + 2 / (2 + x) * (0.27886807 + 2 / (2 + x) * (-1.13520398 + 2 / (2 + x) * (1.48851587
    + 2 / (2 + x) * (-0.82215223 + 2 / (2 + x) * 0.17087277))))))))
);

COMMENT ON MACRO v1._erfc IS 'Complementary error function of x >= 0, to 1.2e-7 of its value.';
