-- Describes how the properties of the sides differ from the baseline, and removes meaningless differences.
-- In:  temp tables side_fact (facts.sql), side_name, answer (answer.sql); {baseline}: a side.
-- Out: temp table side_remark(side, remark, is_incomparable): in words; answer without differences and verdicts if
--      is_incomparable: a step is compared with a whole capture, or captures have different numbers of GPUs.
CREATE OR REPLACE TEMP TABLE side_remark AS
WITH pairs AS (
    SELECT o.side, n.name, m.name AS base_name, b, o
    FROM side_fact AS o
    INNER JOIN side_fact AS b ON b.side = {baseline}
    INNER JOIN side_name AS n ON n.side = o.side
    INNER JOIN side_name AS m ON m.side = b.side
    WHERE o.side <> {baseline}
),

-- The range that takes longest of those that repeat in all captures of two sides, if not equally often.
repeated AS (
    SELECT
        r.side,
        max_by(r.name, (r.time_ns, r.name)) AS name,
        max_by(r.base_instances, (r.time_ns, r.name)) AS base_instances,
        max_by(r.instances, (r.time_ns, r.name)) AS instances
    FROM (
        SELECT
            o.side, o.range.name, b.range.instances AS base_instances, o.range.instances,
            o.range.time_ns + b.range.time_ns AS time_ns
        FROM (SELECT f.side, f.by_step, unnest(f.repeated_ranges) AS range FROM side_fact AS f) AS o
        INNER JOIN (SELECT f.side, f.by_step, unnest(f.repeated_ranges) AS range FROM side_fact AS f) AS b
            ON b.side = {baseline} AND b.range.name = o.range.name
        WHERE o.side <> b.side AND NOT o.by_step AND NOT b.by_step AND b.range.instances <> o.range.instances
    ) AS r
    GROUP BY r.side
),

remarks AS (
    SELECT
        side, 1 AS place, false AS is_incomparable,
        format('{} and {} are the same {}: nothing is compared but a recording with itself', base_name, name,
            CASE len(o.digests) WHEN 1 THEN 'capture' ELSE 'captures' END) AS remark
    FROM pairs
    WHERE b.digests = o.digests
    UNION ALL
    SELECT
        side, 2, false,
        format('{} and {} share {} of their captures', base_name, name, len(list_intersect(b.digests, o.digests)))
    FROM pairs
    WHERE b.digests <> o.digests AND len(list_intersect(b.digests, o.digests)) > 0
    UNION ALL
    SELECT
        side, 3, true,
        format('values of {} are of {}, those of {} of {}: their times and calls cannot be compared, only times per '
            || 'call; --step-range GLOB marks steps where ranges do', base_name,
            CASE WHEN b.by_step THEN 'a step' ELSE 'a whole capture' END, name,
            CASE WHEN o.by_step THEN 'a step' ELSE 'a whole capture' END)
    FROM pairs
    WHERE b.by_step <> o.by_step
    UNION ALL
    SELECT
        side, 4, true,
        format('a capture of {} has {} {}, one of {} has {}: their times and calls cannot be compared, only times per '
            || 'call', base_name, b.gpus_of_capture, CASE b.gpus_of_capture WHEN 1 THEN 'GPU' ELSE 'GPUs' END,
            name, o.gpus_of_capture)
    FROM pairs
    WHERE b.gpus_of_capture <> o.gpus_of_capture
    UNION ALL
    SELECT
        side, 5, false,
        format('a run of {} has {} {}, one of {} has {}', base_name, b.gpus, CASE b.gpus WHEN '1' THEN 'GPU' ELSE 'GPUs' END,
            name, o.gpus)
    FROM pairs
    WHERE b.gpus <> o.gpus AND b.gpus_of_capture = o.gpus_of_capture
    UNION ALL
    SELECT
        side, 6, false,
        format('{} is of {}, {} of {}', base_name, array_to_string(b.models, ', '), name, array_to_string(o.models, ', '))
    FROM pairs
    WHERE b.models <> o.models
    UNION ALL
    SELECT
        side, 7, false,
        format('{} has {} steps of ranks, {} has {}: values are means of a step', base_name, b.units, name, o.units)
    FROM pairs
    WHERE b.by_step AND o.by_step AND b.units <> o.units
    UNION ALL
    SELECT
        side, 8, false,
        format('{} was recorded by {}, {} by {}: they may name a kernel differently, and slow a program differently',
            base_name, array_to_string(b.profilers, ', '), name, array_to_string(o.profilers, ', '))
    FROM pairs
    WHERE b.profilers <> o.profilers
    UNION ALL
    SELECT
        p.side, 9, false,
        format('no steps are marked, so whole captures are compared; --step-range {} compares steps ({} of {} and {} of {})',
            CASE WHEN regexp_full_match(r.name, '[\w.:-]+') THEN r.name ELSE '''' || r.name || '''' END,
            r.base_instances, p.base_name, r.instances, p.name)
    FROM pairs AS p
    INNER JOIN repeated AS r ON r.side = p.side
    UNION ALL
    SELECT
        n.side, 10, false,
        format('{} of {} inside a range named warmup {} no {}', CASE f.warmup_steps WHEN 1 THEN '1 range' ELSE f.warmup_steps || ' ranges' END,
            n.name, CASE f.warmup_steps WHEN 1 THEN 'is' ELSE 'are' END, CASE f.warmup_steps WHEN 1 THEN 'step' ELSE 'steps' END)
    FROM side_fact AS f
    INNER JOIN side_name AS n ON n.side = f.side
    WHERE f.warmup_steps > 0
)

SELECT side, place, is_incomparable, remark
FROM remarks;

UPDATE answer SET
    difference_mean_ns = NULL, ratio = NULL, by_calls_mean_ns = NULL, by_time_mean_ns = NULL, p_value = NULL,
    verdict = 'not comparable'
WHERE side_number IN (SELECT r.side FROM side_remark AS r WHERE r.is_incomparable);
