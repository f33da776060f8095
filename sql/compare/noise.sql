-- Tests for --beyond-noise whether a metric differs between a side and the baseline by more than it varies between
-- runs, or between steps of one run each.
-- In:  temp view side_independent (answer.sql); the macros v1._mann_whitney_u and v1._mann_whitney_p.
-- Out: temp table side_noise(side, kind, name, metric, p_value): two-sided p-value, NULL with fewer than 4 values on a
--      side; a value is a run or a step, not a rank (answer.sql). A value without the entry has a time of 0, no calls,
--      and no time per call.
CREATE OR REPLACE TEMP TABLE side_noise AS
WITH measures AS (
    SELECT f.other, f.side, f.kind, f.name, unnest([
        ('total_ns', f.total_ns), ('calls', f.calls), ('call_ns', f.call_ns)
    ]) AS measure
    FROM side_independent AS f
),

ranked AS (
    SELECT
        f.other, f.side, f.kind, f.name, f.measure[1] AS metric,
        rank() OVER (PARTITION BY f.other, f.kind, f.name, f.measure[1] ORDER BY f.measure[2]) AS first_place,
        count(*) OVER (PARTITION BY f.other, f.kind, f.name, f.measure[1], f.measure[2]) AS ties
    FROM measures AS f
    WHERE f.measure[2] IS NOT NULL
),

sums AS (
    SELECT
        other, kind, name, metric,
        count(*) FILTER (side = other) AS n_other,
        count(*) FILTER (side <> other) AS n_base,
        sum(2 * first_place + ties - 1) FILTER (side = other) AS twice_ranks,
        sum(ties::HUGEINT * ties - 1) AS tie_cubes
    FROM ranked
    GROUP BY other, kind, name, metric
)

SELECT
    other AS side, kind, name, metric,
    CASE WHEN n_other >= 4 AND n_base >= 4
        THEN v1._mann_whitney_p(v1._mann_whitney_u(n_other, twice_ranks), n_other, n_base, tie_cubes)
    END AS p_value
FROM sums;
