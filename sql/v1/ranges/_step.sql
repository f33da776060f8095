-- Which annotations mark training steps, and the position of each among the steps of its capture.
-- Grain: annotation. Steps are ranges named ProfilerStep#N; N is their number. If the session variable step_range holds
-- a pattern (SET VARIABLE step_range = 'iter*', as set by `tracedb report --step-range`), steps are instead the ranges
-- whose name matches it (GLOB), numbered 0, 1, … by start on their thread; a matching range inside another one on its
-- thread is part of that step, and one inside a range named warmup is none (v1._chosen_step). Equal numbers on several
-- threads are one step: threads that work side by side run the same iteration. marked_step is always N: it is the same
-- on all ranks of a run, unlike a position in one capture, so collectives are matched by it.
-- A variable is used instead of a table of patterns, so that a read-only file can be queried with a different pattern
-- each time.
CREATE VIEW v1._step AS
WITH marks AS (
    SELECT
        a.capture_id,
        a.annotation_id,
        TRY_CAST(regexp_extract(a.name, '^ProfilerStep#([0-9]+)$', 1) AS BIGINT) AS number
    FROM main.annotation AS a
    WHERE a.name LIKE 'ProfilerStep#%' AND a.style NOT IN ('mark', 'gpu_projection') AND a.time_fault IS NULL
),
numbered AS (
    SELECT
        m.capture_id,
        m.annotation_id,
        CASE WHEN getvariable('step_range') IS NULL THEN m.number END AS step,
        m.number AS marked_step
    FROM marks AS m
    WHERE m.number IS NOT NULL
    UNION ALL
    SELECT
        o.capture_id,
        o.annotation_id,
        row_number() OVER (
            PARTITION BY o.capture_id, o.process_id, o.thread_id ORDER BY o.start_ns, o.annotation_id
        ) - 1 AS step,
        NULL AS marked_step
    FROM v1._chosen_step AS o
    WHERE NOT o.is_warmup
)
SELECT
    n.capture_id,
    n.annotation_id,
    max(n.step) AS step,
    CASE WHEN max(n.step) IS NOT NULL THEN
        dense_rank() OVER (PARTITION BY n.capture_id ORDER BY max(n.step) NULLS LAST)
    END AS step_index,
    max(n.marked_step) AS marked_step
FROM numbered AS n
GROUP BY n.capture_id, n.annotation_id;
