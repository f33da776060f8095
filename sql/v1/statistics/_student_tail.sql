-- Upper tail of Student's t distribution, for t >= 0 and n degrees of freedom (a whole number): the finite sums of
-- Abramowitz and Stegun, 26.7.3 and 26.7.4. At least 1e-15, below which the difference from 1 is rounding.
CREATE MACRO v1._student_tail(t, n) AS greatest(1e-15, 0.5 - 0.5 * CASE
    WHEN n % 2 = 0 THEN t / sqrt(n + t * t) * list_sum([
        exp(lgamma(k + 0.5) - lgamma(k + 1) - 0.5 * ln(pi()) - k * ln(1 + t * t / n)) FOR k IN range(0, n // 2)
    ])
    ELSE 2 / pi() * (atan(t / sqrt(n)) + t * sqrt(n) / (n + t * t) * coalesce(list_sum([
        exp(lgamma(k + 1) - lgamma(k + 1.5) + 0.5 * ln(pi()) - ln(2) - k * ln(1 + t * t / n)) FOR k IN range(0, n // 2)
    ]), 0))
END);

COMMENT ON MACRO v1._student_tail IS 'Probability of a value of Student''s t of at least t >= 0 with n degrees of freedom.';
