-- Does a setting of the run change the spread of GEMM times?
-- Grain: factor × level: a label with several values, or the rank, and each of its values. The measured quantity is the
-- spread (longest minus shortest call) of each GEMM (kernel and input shapes) on each GPU; GEMMs with one call have
-- none.
-- Whiskers are Tukey's: the furthest values within 1.5 interquartile ranges of the box.
-- The test is Kruskal-Wallis, corrected for ties. Rows of one run are not independent: what disturbs a run disturbs all
-- its GEMMs. So each run contributes one value, the median over its GEMMs (for factor rank: over those of the rank),
-- and there is no p-value if a level has fewer than 3. The tail of the chi-squared distribution is the closed form for
-- integer degrees of freedom.
CREATE VIEW v1.gemm_spread AS
WITH measured AS (
    SELECT g.factor, g.level, g.level_place, g.set_id, g.spread_ns
    FROM v1._gemm_spread AS g /* inline */
),
boxes AS (
    SELECT
        g.factor,
        g.level,
        g.level_place,
        count(*) AS gemms,
        count(DISTINCT g.set_id) AS runs,
        min(g.spread_ns) AS min_ns,
        max(g.spread_ns) AS max_ns,
        sum(g.spread_ns) / count(*) AS mean_ns,
        quantile_cont(g.spread_ns, [0.25, 0.5, 0.75]) AS quartiles
    FROM measured AS g
    GROUP BY g.factor, g.level, g.level_place
),
whiskers AS (
    SELECT
        b.factor,
        b.level,
        min(g.spread_ns) FILTER (g.spread_ns >= b.quartiles[1] - 1.5 * (b.quartiles[3] - b.quartiles[1])) AS low_ns,
        max(g.spread_ns) FILTER (g.spread_ns <= b.quartiles[3] + 1.5 * (b.quartiles[3] - b.quartiles[1])) AS high_ns
    FROM boxes AS b
    INNER JOIN measured AS g ON g.factor = b.factor AND g.level = b.level
    GROUP BY b.factor, b.level
),
outside AS (
    SELECT w.factor, w.level, list(g.spread_ns ORDER BY g.spread_ns) AS outliers
    FROM whiskers AS w
    INNER JOIN measured AS g ON g.factor = w.factor AND g.level = w.level
    WHERE g.spread_ns < w.low_ns OR g.spread_ns > w.high_ns
    GROUP BY w.factor, w.level
),
trials AS (
    SELECT g.factor, g.level, g.set_id, median(g.spread_ns) AS trial_ns
    FROM measured AS g
    GROUP BY g.factor, g.level, g.set_id
),
ranked AS (
    SELECT
        factor,
        level,
        rank() OVER (PARTITION BY factor ORDER BY trial_ns) + (count(*) OVER (PARTITION BY factor, trial_ns) - 1) / 2.0
            AS place,
        count(*) OVER (PARTITION BY factor, trial_ns) AS ties
    FROM trials
),
level_sums AS (
    SELECT factor, level, count(*) AS trials, sum(place) AS places, sum(ties::HUGEINT * ties - 1) AS tie_cubes
    FROM ranked
    GROUP BY factor, level
),
tests AS (
    SELECT
        factor,
        count(*) AS levels,
        sum(trials) AS trials,
        min(trials) AS fewest_trials,
        (12 / (sum(trials) * (sum(trials) + 1.0)) * sum(places ** 2 / trials ORDER BY level) - 3 * (sum(trials) + 1))
            / nullif(1 - sum(tie_cubes) / nullif(sum(trials)::DOUBLE ** 3 - sum(trials), 0), 0) AS statistic
    FROM level_sums
    GROUP BY factor
),
tails AS (
    SELECT
        factor,
        levels,
        trials,
        fewest_trials,
        greatest(statistic, 0) / 2 AS half,
        sqrt(half) AS x
    FROM tests
),
terms AS (
    SELECT factor, levels, half, unnest(range(0, (levels - 1) // 2)) AS i
    FROM tails
),
term_sums AS (
    SELECT
        factor,
        sum(CASE
            WHEN half = 0 THEN CASE WHEN levels % 2 = 1 AND i = 0 THEN 1 ELSE 0 END
            WHEN levels % 2 = 1 THEN exp(i * ln(half) - lgamma(i + 1) - half)
            ELSE exp((i + 0.5) * ln(half) - lgamma(i + 1.5) - half)
        END ORDER BY i) AS total
    FROM terms
    GROUP BY factor
),
answers AS (
    SELECT
        a.factor,
        a.trials,
        a.fewest_trials,
        CASE WHEN a.fewest_trials >= 3 THEN
            least(1.0, coalesce(m.total, 0) + CASE WHEN a.levels % 2 = 0 THEN v1._erfc(a.x) ELSE 0 END)
        END AS p_value
    FROM tails AS a
    LEFT JOIN term_sums AS m ON m.factor = a.factor
)
SELECT
    b.factor,
    b.level,
    b.level_place,
    b.gemms,
    b.runs,
    b.min_ns,
    w.low_ns,
    b.quartiles[1] AS p25_ns,
    b.quartiles[2] AS median_ns,
    b.quartiles[3] AS p75_ns,
    w.high_ns,
    b.max_ns,
    b.mean_ns,
    coalesce(o.outliers, []) AS outliers,
    a.trials::BIGINT AS trials,
    a.fewest_trials,
    a.p_value
FROM boxes AS b
INNER JOIN whiskers AS w ON w.factor = b.factor AND w.level = b.level
INNER JOIN answers AS a ON a.factor = b.factor
LEFT JOIN outside AS o ON o.factor = b.factor AND o.level = b.level;

COMMENT ON VIEW v1.gemm_spread IS 'Distribution of the spread of GEMM times for each setting, and whether settings differ. Grain: factor (label with several values, or rank) × level.';
COMMENT ON COLUMN v1.gemm_spread.factor IS 'Label with several values, or rank.';
COMMENT ON COLUMN v1.gemm_spread.level IS 'Its value.';
COMMENT ON COLUMN v1.gemm_spread.level_place IS 'Position of the value among the values of the factor, from 1; numbers are ordered numerically. [-]';
COMMENT ON COLUMN v1.gemm_spread.gemms IS 'Number of GEMMs (kernel with its input shapes, per GPU and capture) with two or more calls. [count]';
COMMENT ON COLUMN v1.gemm_spread.runs IS 'Number of runs with such GEMMs. [count]';
COMMENT ON COLUMN v1.gemm_spread.min_ns IS 'Smallest spread. [ns]';
COMMENT ON COLUMN v1.gemm_spread.low_ns IS 'Lower whisker: smallest spread at most 1.5 interquartile ranges below the lower quartile. [ns]';
COMMENT ON COLUMN v1.gemm_spread.p25_ns IS 'Lower quartile of spreads, interpolated. [ns]';
COMMENT ON COLUMN v1.gemm_spread.median_ns IS 'Median of spreads. [ns]';
COMMENT ON COLUMN v1.gemm_spread.p75_ns IS 'Upper quartile of spreads, interpolated. [ns]';
COMMENT ON COLUMN v1.gemm_spread.high_ns IS 'Upper whisker: largest spread at most 1.5 interquartile ranges above the upper quartile. [ns]';
COMMENT ON COLUMN v1.gemm_spread.max_ns IS 'Largest spread. [ns]';
COMMENT ON COLUMN v1.gemm_spread.mean_ns IS 'Mean of spreads. [ns]';
COMMENT ON COLUMN v1.gemm_spread.outliers IS 'Spreads below low_ns or above high_ns, in ascending order. [ns]';
COMMENT ON COLUMN v1.gemm_spread.trials IS 'Number of values that the test compares, over all levels: one per run (for factor rank: one per run and rank). [count]';
COMMENT ON COLUMN v1.gemm_spread.fewest_trials IS 'Number of these in the level that has the fewest. [count]';
COMMENT ON COLUMN v1.gemm_spread.p_value IS 'P-value of the Kruskal-Wallis test for a difference between levels, the same in all rows of a factor; NULL if a level has fewer than 3 trials. [probability]';
