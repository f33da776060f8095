-- Probability of k or more successes in n independent trials of probability p each (0 < p < 1). Exact; summed in
-- logarithms, so that n may be large.
CREATE MACRO v1._binomial_tail(k, n, p) AS least(1.0, list_sum([
    exp(lgamma(n + 1) - lgamma(i + 1) - lgamma(n - i + 1) + i * ln(p) + (n - i) * ln(1 - p)) FOR i IN range(k, n + 1)
]));

COMMENT ON MACRO v1._binomial_tail IS 'Probability of k or more successes in n trials of probability p each.';
