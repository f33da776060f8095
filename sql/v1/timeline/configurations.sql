-- Which setting is best?
-- Grain: configuration (labels without the rank, of one profiler) whose captures mark steps. A step takes one rank as
-- long as its range, or as its GPU work from first start to last end if that is longer (a host that runs ahead ends its
-- ranges early); it takes the configuration as long as its slowest rank. Each step gives one value, not one per rank:
-- ranks wait for each other, so their times are not independent. Files of unknown rank are separate runs. The best
-- setting has the lowest mean.
-- Every other setting is tested against the best (v1._mann_whitney_p), and the best against the second best. Steps of
-- one run are not independent: what disturbs a run disturbs its steps. So where a side has several runs, the test is
-- over runs, each with the mean of its steps; taking their steps for independent would find a difference between equal
-- settings in one case of four instead of one of twenty. One run against one run leaves only steps, whose test says
-- nothing about other runs. Fewer than 4 values on either side give no result: of 3 against 3 no difference can be
-- significant (p >= 0.1).
CREATE VIEW v1.configurations AS
WITH spans AS (
    SELECT
        /* by e */
        e.capture_id AS clock_id,
        k.step AS step_number,
        max(e.end_ns) - min(e.start_ns) AS span_ns
    FROM v1._unclassed_event AS e
    INNER JOIN v1._step_kernel AS k ON k.capture_id = e.capture_id AND k.event_id = e.event_id /* join e */
    WHERE k.step IS NOT NULL /* filter e */
    GROUP BY ALL
),
parts AS (
    SELECT
        /* by p */
        y.source AS profiler,
        y.labels AS setting,
        y.set_id,
        p.clock_id,
        y.rank AS member,
        CASE WHEN y.rank IS NULL THEN c.path END AS run_path,
        p.step_number,
        greatest(p.span_ns, m.range_ns) AS part_ns
    FROM spans AS p
    INNER JOIN v1._capture_set AS y ON y.capture_id = p.clock_id
    INNER JOIN main.capture AS c ON c.capture_id = p.clock_id
    LEFT JOIN v1._step_mark AS m ON m.capture_id = p.clock_id AND m.step = p.step_number
),
steps AS (
    SELECT
        /* by */
        /* grain */ profiler, setting, /* end grain */
        coalesce(run_path, set_id::VARCHAR) AS run,
        step_number,
        max(part_ns) AS step_ns,
        dense_rank() OVER (ORDER BY /* by */ /* grain */ profiler, setting, /* end grain */ true) AS setting_id
    FROM parts
    GROUP BY /* by */ /* grain */ profiler, setting, /* end grain */ set_id, run_path, step_number
),
captures AS (
    SELECT
        /* by */
        /* grain */ profiler, setting, /* end grain */
        set_id,
        clock_id,
        any_value(member) AS member,
        any_value(run_path) AS run_path,
        count(*) AS steps
    FROM parts
    GROUP BY /* by */ /* grain */ profiler, setting, /* end grain */ set_id, clock_id
),
sizes AS (
    SELECT
        /* by */
        /* grain */ profiler, setting, /* end grain */
        CASE WHEN count(member) > 0 THEN count(DISTINCT member) ELSE count(*) // greatest(count(DISTINCT run_path), 1) END AS ranks
    FROM captures
    GROUP BY /* by */ /* grain */ profiler, setting, /* end grain */ true
),
stragglers AS (
    SELECT
        /* by c */
        /* grain */ c.profiler, c.setting, /* end grain */
        CASE WHEN min(w.straggler_member) = max(w.straggler_member) THEN max(w.straggler_member) END AS straggler_member
    FROM captures AS c
    INNER JOIN v1._straggler AS w /* inline */ ON w.set_id = c.set_id
    GROUP BY /* by c */ /* grain */ c.profiler, c.setting, /* end grain */ true
),
shares AS (
    SELECT
        /* by c */
        /* grain */ c.profiler, c.setting, /* end grain */
        count(*) AS gpus,
        sum(u.union_2_ns - u.union_1_ns) / nullif(sum(c.steps), 0) AS exposed_collective_mean_ns,
        100.0 * sum(u.union_1_ns) / nullif(sum(u.total_ns), 0) AS computation_percent,
        100.0 * sum(u.union_2_ns - u.union_1_ns) / nullif(sum(u.total_ns), 0) AS exposed_collective_percent,
        100.0 * sum(u.union_3_ns - u.union_2_ns) / nullif(sum(u.total_ns), 0) AS exposed_copy_percent,
        100.0 * sum(u.total_ns - u.union_3_ns) / nullif(sum(u.total_ns), 0) AS idle_percent
    FROM captures AS c
    INNER JOIN v1._gpu_time AS u /* inline */ ON u.clock_id = c.clock_id /* using u c */
    GROUP BY /* by c */ /* grain */ c.profiler, c.setting, /* end grain */ true
),
means AS (
    SELECT
        /* by */
        /* grain */ profiler, setting, /* end grain */
        setting_id,
        count(DISTINCT run) AS runs,
        count(*) AS steps,
        sum(step_ns) / count(*) AS mean_ns,
        median(step_ns) AS median_ns,
        min(step_ns) AS min_ns,
        max(step_ns) AS max_ns,
        v1._sample_stddev(count(*), sum(step_ns), sum(step_ns::HUGEINT * step_ns)) AS stddev_ns,
        rank() OVER (ORDER BY sum(step_ns) / count(*)) = 1 AS is_best,
        row_number() OVER (ORDER BY sum(step_ns) / count(*), setting_id) AS place
    FROM steps
    GROUP BY /* by */ /* grain */ profiler, setting, /* end grain */ setting_id
),
-- The setting that each setting is tested against.
rivals AS (
    SELECT m.setting_id, r.setting_id AS rival_id, m.runs > 1 OR r.runs > 1 AS is_by_run
    FROM means AS m
    INNER JOIN means AS r ON r.place = CASE m.place WHEN 1 THEN 2 ELSE 1 END
),
run_means AS (
    SELECT setting_id, sum(step_ns) / count(*) AS mean_ns
    FROM steps
    GROUP BY setting_id, run
),
tested AS (
    SELECT v.setting_id, n.setting_id = v.setting_id AS is_own, n.step_ns AS value_ns
    FROM rivals AS v
    INNER JOIN steps AS n ON n.setting_id IN (v.setting_id, v.rival_id)
    WHERE NOT v.is_by_run
    UNION ALL
    SELECT v.setting_id, n.setting_id = v.setting_id AS is_own, n.mean_ns AS value_ns
    FROM rivals AS v
    INNER JOIN run_means AS n ON n.setting_id IN (v.setting_id, v.rival_id)
    WHERE v.is_by_run
),
ranked AS (
    SELECT
        setting_id,
        is_own,
        rank() OVER (PARTITION BY setting_id ORDER BY value_ns) AS first_place,
        count(*) OVER (PARTITION BY setting_id, value_ns) AS ties
    FROM tested
),
sums AS (
    SELECT
        setting_id,
        count(*) FILTER (is_own) AS own_values,
        count(*) FILTER (NOT is_own) AS rival_values,
        sum(2 * first_place + ties - 1) FILTER (is_own) AS twice_ranks,
        sum(ties::HUGEINT * ties - 1) AS tie_cubes
    FROM ranked
    GROUP BY setting_id
),
tests AS (
    SELECT
        s.setting_id,
        CASE WHEN v.is_by_run THEN 'runs' ELSE 'steps' END AS tested_over,
        CASE WHEN own_values >= 4 AND rival_values >= 4
            THEN v1._mann_whitney_p(
                v1._mann_whitney_u(own_values, twice_ranks), own_values, rival_values, tie_cubes)
        END AS p_value
    FROM sums AS s
    INNER JOIN rivals AS v ON v.setting_id = s.setting_id
)
SELECT
    /* by means */
    /* grain */ means.profiler AS source, means.setting AS labels, /* end grain */
    z.ranks,
    means.runs,
    means.steps,
    means.mean_ns AS step_mean_ns,
    means.median_ns AS step_median_ns,
    means.min_ns AS step_min_ns,
    means.max_ns AS step_max_ns,
    means.stddev_ns AS step_stddev_ns,
    means.mean_ns / nullif(min(means.mean_ns) OVER (), 0) AS ratio_to_best,
    h.exposed_collective_mean_ns,
    h.computation_percent,
    h.exposed_collective_percent,
    h.exposed_copy_percent,
    h.idle_percent,
    h.gpus,
    g.straggler_member AS straggler_rank,
    means.is_best,
    t.p_value < 0.05 AS beyond_noise,
    t.p_value,
    t.tested_over,
    CASE
        WHEN t.p_value < 0.05 THEN 'beyond noise'
        WHEN t.p_value IS NOT NULL THEN 'within noise'
        ELSE 'too few ' || t.tested_over || ' to tell'
    END AS verdict
FROM means
INNER JOIN sizes AS z ON true /* using means z */ /* grain */ AND z.profiler = means.profiler AND z.setting = means.setting /* end grain */
LEFT JOIN shares AS h ON true /* using means h */ /* grain */ AND h.profiler = means.profiler AND h.setting = means.setting /* end grain */
LEFT JOIN stragglers AS g ON true /* using means g */ /* grain */ AND g.profiler = means.profiler AND g.setting = means.setting /* end grain */
LEFT JOIN tests AS t ON t.setting_id = means.setting_id;

COMMENT ON VIEW v1.configurations IS 'Which setting is best: step times, exposed collectives, idle time and straggler. Differences are tested by rank (Mann-Whitney) over runs if a setting has several, else over steps. Grain: configuration.';
COMMENT ON COLUMN v1.configurations.source IS 'Profiler or format of the captures.';
COMMENT ON COLUMN v1.configurations.labels IS 'Configuration: labels of the captures, without the rank.';
COMMENT ON COLUMN v1.configurations.ranks IS 'Number of ranks, or of captures recorded together if ranks are unknown. [count]';
COMMENT ON COLUMN v1.configurations.runs IS 'Number of runs: recordings of all ranks together, or files if ranks are unknown. [count]';
COMMENT ON COLUMN v1.configurations.steps IS 'Number of steps with GPU work; a step counts once for all ranks. [count]';
COMMENT ON COLUMN v1.configurations.step_mean_ns IS 'Mean step time. A step takes as long as its slowest rank: the range of the step, or its GPU work from first start to last end if that is longer. [ns]';
COMMENT ON COLUMN v1.configurations.step_median_ns IS 'Median step time. [ns]';
COMMENT ON COLUMN v1.configurations.step_min_ns IS 'Shortest step time. [ns]';
COMMENT ON COLUMN v1.configurations.step_max_ns IS 'Longest step time. [ns]';
COMMENT ON COLUMN v1.configurations.step_stddev_ns IS 'Sample standard deviation of step times; 0 for one step. [ns]';
COMMENT ON COLUMN v1.configurations.ratio_to_best IS 'Mean step time divided by that of the best setting. [ratio]';
COMMENT ON COLUMN v1.configurations.exposed_collective_mean_ns IS 'GPU time during which a collective runs and no computation does, per step: mean over GPUs and steps, with what the recording holds outside steps. [ns]';
COMMENT ON COLUMN v1.configurations.computation_percent IS 'Share of GPU time spent computing, as in gpu_timeline. [percent]';
COMMENT ON COLUMN v1.configurations.exposed_collective_percent IS 'Share of GPU time during which a collective runs and no computation does. [percent]';
COMMENT ON COLUMN v1.configurations.exposed_copy_percent IS 'Share of GPU time during which a copy or memset runs, and neither computation nor a collective does. [percent]';
COMMENT ON COLUMN v1.configurations.idle_percent IS 'Share of GPU time during which nothing runs. [percent]';
COMMENT ON COLUMN v1.configurations.gpus IS 'Number of GPUs (devices of captures) that the shares cover. [count]';
COMMENT ON COLUMN v1.configurations.straggler_rank IS 'Rank that is the straggler, as in stragglers; NULL if there is none or it is unknown. [-]';
COMMENT ON COLUMN v1.configurations.is_best IS 'Whether no other setting has a lower mean step time.';
COMMENT ON COLUMN v1.configurations.beyond_noise IS 'Whether the difference from the best setting (for the best: from the second best) exceeds the spread between runs, or between steps if both have one run (p_value < 0.05); NULL with fewer than 4 of them on either side.';
COMMENT ON COLUMN v1.configurations.p_value IS 'Two-sided p-value of the Mann-Whitney test against the best setting (for the best: the second best), over means of runs or over steps (tested_over); NULL with fewer than 4 on either side. [probability]';
COMMENT ON COLUMN v1.configurations.tested_over IS 'What the test compares: runs (means of their steps) if either setting has several, since steps of one run are not independent, else steps of one run each, which say nothing about other runs; NULL if there is no other setting.';
COMMENT ON COLUMN v1.configurations.verdict IS 'beyond noise, within noise, too few runs to tell or too few steps to tell (fewer than 4 on either side); NULL if there is no other setting.';
