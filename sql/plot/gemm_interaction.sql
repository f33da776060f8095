-- The mean spread of GEMM times for each pair of settings: the first factor as lines over the second one.
-- In:  answer: rows of v1.gemm_spread_pairs. {factors}: a list of two factors, empty for threads and channels.
SELECT
    a.factor, a.level, a.level_place, a.other_factor, a.other_level, a.other_place, a.gemms, a.runs,
    a.mean_ns,
    a.mean_ns - a.error_mean_ns AS low_ns,
    a.mean_ns + a.error_mean_ns AS high_ns,
    a.median_ns
FROM answer AS a
WHERE a.factor = coalesce({factors}[1], 'threads') AND a.other_factor = coalesce({factors}[2], 'channels')
    AND a.level_place <= 10 AND a.other_place <= 40
ORDER BY a.level_place, a.other_place
