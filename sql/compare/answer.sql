-- Compares each side with the baseline: means over units, the parts due to the number of calls and to time per call,
-- and whether the difference exceeds the spread between units.
-- In:  temp tables side_unit, side_run, side_timeline_unit, side_value (side.sql), side_fact (facts.sql),
--      side_name(side, name); {baseline}: a side; the macros v1._mann_whitney_u and v1._mann_whitney_p of the views.
-- Out: temp table answer; temp view side_filled(kind, name, side, unit, calls, total_ns), with zeros; temp table
--      side_test(other, runs, base_runs, tested_over); temp view side_independent(other, kind, name, side, calls,
--      total_ns, call_ns): the values to test of a side (other) and of the baseline, one per run or per step of a run.
-- A unit without a kernel counts as zero. The spread is tested by rank (Mann-Whitney, with at least 4 values on each
-- side), which uses no random numbers, so the result is reproducible. What a value is follows v1.configurations: ranks
-- wait for each other, so those of a step are averaged; steps of one run are not independent, so where a side has several
-- runs, or no steps are marked, runs are tested.
CREATE OR REPLACE TEMP VIEW side_filled AS
WITH places AS (
    SELECT 'timeline' AS kind, side, unit FROM side_timeline_unit
    UNION ALL
    SELECT k.kind, u.side, u.unit
    FROM side_unit AS u
    CROSS JOIN (SELECT DISTINCT kind FROM side_value WHERE kind <> 'timeline') AS k
),

entries AS (
    SELECT DISTINCT kind, name FROM side_value
)

SELECT
    n.kind, n.name, p.side, p.unit,
    coalesce(v.calls, 0) AS calls,
    coalesce(v.total_ns, 0) AS total_ns
FROM entries AS n
INNER JOIN places AS p ON p.kind = n.kind
LEFT JOIN side_value AS v ON v.kind = n.kind AND v.name = n.name AND v.side = p.side AND v.unit = p.unit;

CREATE OR REPLACE TEMP TABLE side_test AS
WITH runs AS (
    SELECT u.side, count(DISTINCT coalesce(r.run, u.unit)) AS runs
    FROM side_unit AS u
    LEFT JOIN side_run AS r ON r.side = u.side AND r.capture_id = split_part(u.unit, '/', 1)::BIGINT
    GROUP BY u.side
)

SELECT
    o.side AS other, o.runs, b.runs AS base_runs,
    CASE WHEN o.runs > 1 OR b.runs > 1 OR NOT f.by_step OR NOT g.by_step THEN 'runs' ELSE 'steps' END AS tested_over
FROM runs AS o
INNER JOIN runs AS b ON b.side = {baseline}
INNER JOIN side_fact AS f ON f.side = o.side
INNER JOIN side_fact AS g ON g.side = {baseline}
WHERE o.side <> {baseline};

CREATE OR REPLACE TEMP VIEW side_independent AS
SELECT
    t.other, f.kind, f.name, f.side,
    avg(f.calls) AS calls,
    avg(f.total_ns) AS total_ns,
    sum(f.total_ns) / nullif(sum(f.calls), 0) AS call_ns
FROM side_filled AS f
INNER JOIN side_test AS t ON f.side IN (t.other, {baseline})
LEFT JOIN side_run AS r ON r.side = f.side AND r.capture_id = split_part(f.unit, '/', 1)::BIGINT
GROUP BY t.other, f.kind, f.name, f.side, coalesce(r.run, f.unit),
    CASE t.tested_over WHEN 'steps' THEN regexp_extract(f.unit, '/(.*)$', 1) END;

CREATE OR REPLACE TEMP TABLE answer AS
WITH means AS (
    SELECT kind, name, side, count(*) AS units, sum(calls) AS calls, sum(total_ns) AS total_ns
    FROM side_filled
    GROUP BY kind, name, side
),

pairs AS (
    SELECT
        o.side, o.kind, o.name, b.units AS base_units, o.units AS other_units,
        b.calls AS base_calls, o.calls AS other_calls, b.total_ns AS base_total_ns, o.total_ns AS other_total_ns
    FROM means AS o
    INNER JOIN means AS b ON b.kind = o.kind AND b.name = o.name AND b.side = {baseline}
    WHERE o.side <> {baseline} AND (o.calls > 0 OR b.calls > 0)
),

ranked AS (
    SELECT
        f.other, f.kind, f.name, f.side,
        rank() OVER (PARTITION BY f.other, f.kind, f.name ORDER BY f.total_ns) AS first_place,
        count(*) OVER (PARTITION BY f.other, f.kind, f.name, f.total_ns) AS ties
    FROM side_independent AS f
),

sums AS (
    SELECT
        other, kind, name,
        count(*) FILTER (side = other) AS n_other,
        count(*) FILTER (side <> other) AS n_base,
        sum(2 * first_place + ties - 1) FILTER (side = other) AS twice_ranks,
        sum(ties::HUGEINT * ties - 1) AS tie_cubes
    FROM ranked
    GROUP BY other, kind, name
)

SELECT
    p.side AS side_number,
    n.name AS side,
    p.kind,
    p.name,
    CASE WHEN p.base_calls = 0 THEN 'new' WHEN p.other_calls = 0 THEN 'vanished' ELSE 'both' END AS status,
    p.base_units,
    p.other_units AS units,
    t.n_base AS base_independent_units,
    t.n_other AS independent_units,
    h.tested_over,
    p.base_calls / p.base_units AS base_calls_per_unit,
    p.other_calls / p.other_units AS calls_per_unit,
    p.base_total_ns / p.base_units AS base_mean_ns,
    p.other_total_ns / p.other_units AS mean_ns,
    p.other_total_ns / p.other_units - p.base_total_ns / p.base_units AS difference_mean_ns,
    (p.other_total_ns / p.other_units) / nullif(p.base_total_ns / p.base_units, 0) AS ratio,
    p.base_total_ns / nullif(p.base_calls, 0) AS base_call_mean_ns,
    p.other_total_ns / nullif(p.other_calls, 0) AS call_mean_ns,
    CASE WHEN p.base_calls > 0
        THEN (p.other_calls / p.other_units - p.base_calls / p.base_units) * (p.base_total_ns / p.base_calls)
        ELSE p.other_total_ns / p.other_units END AS by_calls_mean_ns,
    difference_mean_ns - by_calls_mean_ns AS by_time_mean_ns,
    CASE WHEN t.n_other >= 4 AND t.n_base >= 4
        THEN v1._mann_whitney_p(v1._mann_whitney_u(t.n_other, t.twice_ranks), t.n_other, t.n_base, t.tie_cubes)
    END AS p_value,
    CASE
        WHEN p_value IS NULL THEN 'too few ' || h.tested_over
        WHEN p_value >= 0.05 THEN 'within the spread'
        WHEN difference_mean_ns > 0 THEN 'slower'
        ELSE 'faster'
    END AS verdict
FROM pairs AS p
INNER JOIN side_name AS n ON n.side = p.side
INNER JOIN side_test AS h ON h.other = p.side
INNER JOIN sums AS t ON t.other = p.side AND t.kind = p.kind AND t.name = p.name;
