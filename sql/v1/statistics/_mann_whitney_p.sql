-- Two-sided p-value of Mann-Whitney's U (v1._mann_whitney_u) of n and m values: the probability of a U at least as far
-- from the middle if both samples come from one distribution. Normal approximation with continuity correction, for at
-- least 4 values on each side. It uses no random numbers, so the result is reproducible.
CREATE MACRO v1._mann_whitney_p(u, n, m, tie_cubes) AS least(1.0, v1._erfc(
    CASE WHEN v1._mann_whitney_stddev(n, m, tie_cubes) > 0
        THEN greatest(abs(u - n::DOUBLE * m / 2) - 0.5, 0) / v1._mann_whitney_stddev(n, m, tie_cubes)
        ELSE 0
    END / sqrt(2)
));

COMMENT ON MACRO v1._mann_whitney_p IS 'Two-sided p-value of Mann-Whitney''s U of n and m values, corrected for ties and continuity.';
