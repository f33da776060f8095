-- Standard deviation of Mann-Whitney's U if n and m values come from one distribution, corrected for ties.
-- tie_cubes: the sum over all values of ties² - 1, which equals the sum of ties³ - ties over the groups of equal
-- values.
CREATE MACRO v1._mann_whitney_stddev(n, m, tie_cubes) AS
sqrt(n::DOUBLE * m / 12 * (n + m + 1 - tie_cubes / nullif((n + m)::DOUBLE * (n + m - 1), 0)));

COMMENT ON MACRO v1._mann_whitney_stddev IS 'Standard deviation of Mann-Whitney''s U of n and m values under no difference, corrected for ties.';
