-- Does the effect of one setting on the spread of GEMM times depend on another setting?
-- Grain: factor × level × other factor × its level, for each pair of factors in both orders (see v1.gemm_spread).
CREATE VIEW v1.gemm_spread_pairs AS
WITH measured AS (
    SELECT
        g.clock_id, g.gpu_id, g.name, g.input_dims, g.factor, g.level, g.level_place, g.set_id, g.spread_ns
    FROM v1._gemm_spread AS g /* inline */
)
SELECT
    a.factor,
    a.level,
    a.level_place,
    b.factor AS other_factor,
    b.level AS other_level,
    b.level_place AS other_place,
    count(*) AS gemms,
    count(DISTINCT a.set_id) AS runs,
    sum(a.spread_ns) / count(*) AS mean_ns,
    median(a.spread_ns) AS median_ns,
    stddev_samp(a.spread_ns ORDER BY a.spread_ns) / sqrt(count(*)) AS error_mean_ns
FROM measured AS a
INNER JOIN measured AS b
    ON b.clock_id = a.clock_id AND b.gpu_id IS NOT DISTINCT FROM a.gpu_id AND b.name = a.name
    AND b.input_dims IS NOT DISTINCT FROM a.input_dims AND b.factor <> a.factor
GROUP BY a.factor, a.level, a.level_place, b.factor, b.level, b.level_place;

COMMENT ON VIEW v1.gemm_spread_pairs IS 'Spread of GEMM times for each pair of settings. Grain: factor × level × other factor × its level.';
COMMENT ON COLUMN v1.gemm_spread_pairs.factor IS 'Label with several values, or rank.';
COMMENT ON COLUMN v1.gemm_spread_pairs.level IS 'Its value.';
COMMENT ON COLUMN v1.gemm_spread_pairs.level_place IS 'Position of the value among the values of the factor, from 1; numbers are ordered numerically. [-]';
COMMENT ON COLUMN v1.gemm_spread_pairs.other_factor IS 'Another label with several values, or rank.';
COMMENT ON COLUMN v1.gemm_spread_pairs.other_level IS 'Its value.';
COMMENT ON COLUMN v1.gemm_spread_pairs.other_place IS 'Position of that value among the values of the other factor. [-]';
COMMENT ON COLUMN v1.gemm_spread_pairs.gemms IS 'Number of GEMMs (kernel with its input shapes, per GPU and capture) with two or more calls. [count]';
COMMENT ON COLUMN v1.gemm_spread_pairs.runs IS 'Number of runs with such GEMMs. [count]';
COMMENT ON COLUMN v1.gemm_spread_pairs.mean_ns IS 'Mean of spreads (longest minus shortest call). [ns]';
COMMENT ON COLUMN v1.gemm_spread_pairs.median_ns IS 'Median of spreads. [ns]';
COMMENT ON COLUMN v1.gemm_spread_pairs.error_mean_ns IS 'Standard error of the mean over GEMMs, assuming that they are independent; NULL for one GEMM. [ns]';
