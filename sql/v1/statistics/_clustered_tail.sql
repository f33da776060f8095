-- v1._binomial_tail for trials that come in clusters: as if there were fewer of them, by the design effect
-- (v1._design_effect), rounded down.
CREATE MACRO v1._clustered_tail(k, n, p, effect) AS
    v1._binomial_tail(floor(k / effect)::BIGINT, greatest(floor(n / effect), 1)::BIGINT, p);

COMMENT ON MACRO v1._clustered_tail IS 'Probability of k or more successes in n trials of probability p each that come in clusters.';
