-- Box plots of the spread of GEMM times, one per level of a factor; the largest outliers are drawn individually.
-- In:  answer: rows of v1.gemm_spread. {factors}: a list of factors, empty for all.
SELECT
    a.factor, a.level, a.level_place, a.gemms, a.runs,
    a.low_ns, a.p25_ns, a.median_ns, a.p75_ns, a.high_ns, a.mean_ns,
    a.outliers[-100:] AS outliers,
    len(a.outliers) AS all_outliers,
    sum(greatest(len(a.outliers) - 100, 0)) OVER () AS left_out,
    a.trials, a.fewest_trials, a.p_value
FROM answer AS a
WHERE a.level_place <= 40 AND (len({factors}) = 0 OR list_contains({factors}, a.factor))
ORDER BY list_position({factors}, a.factor) NULLS LAST, a.factor, a.level_place
