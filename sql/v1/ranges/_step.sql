-- Which annotations mark training steps, and the position of each among the steps of its capture.
-- Grain: annotation. Steps are ranges named ProfilerStep#N; N is their number. If the session variable step_range holds
-- a pattern (SET VARIABLE step_range = 'iter*', as set by `tracedb report --step-range`), steps are instead the ranges
-- whose name matches it (GLOB), numbered 0, 1, … by start on their thread; a matching range inside another one on its
-- thread is part of that step. Equal numbers on several threads are one step: threads that work side by side run the
-- same iteration. marked_step is always N: it is the same on all ranks of a run, unlike a position in one capture, so
-- collectives are matched by it.
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
chosen AS (
    SELECT
        a.capture_id, a.annotation_id, a.process_id, a.thread_id, a.depth, a.start_ns,
        coalesce(a.start_ns + a.duration_ns, 9223372036854775807) AS end_ns
    FROM main.annotation AS a
    WHERE getvariable('step_range') IS NOT NULL
        AND (
            a.name GLOB getvariable('step_range')::VARCHAR
            OR (getvariable('step_range')::VARCHAR LIKE '%:%'
                AND (a.domain || ':' || a.name) GLOB getvariable('step_range')::VARCHAR)
        )
        AND a.style NOT IN ('mark', 'gpu_projection') AND a.time_fault IS NULL
        AND (a.duration_ns IS NOT NULL OR a.is_open)
),
outermost AS (
    SELECT c.capture_id, c.annotation_id, c.process_id, c.thread_id, c.start_ns
    FROM chosen AS c
    QUALIFY coalesce(c.end_ns > max(c.end_ns) OVER (
        PARTITION BY c.capture_id, c.process_id, c.thread_id
        ORDER BY c.start_ns, c.end_ns DESC, c.depth, c.annotation_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ), true)
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
    FROM outermost AS o
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
