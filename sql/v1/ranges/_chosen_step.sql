-- Which ranges are steps because the session variable step_range holds a pattern (see v1._step)?
-- Grain: annotation whose name matches it (GLOB), the outermost on its thread. is_warmup: it is inside a range named
-- warmup (as in v1._range_instance) that does not match itself, and its capture has matching ranges outside of these:
-- then it is no step.
CREATE VIEW v1._chosen_step AS
WITH ranges AS (
    SELECT
        a.capture_id, a.annotation_id, a.process_id, a.thread_id, a.depth, a.start_ns,
        coalesce(a.start_ns + a.duration_ns, 9223372036854775807) AS end_ns,
        a.name GLOB getvariable('step_range')::VARCHAR
            OR (getvariable('step_range')::VARCHAR LIKE '%:%'
                AND (a.domain || ':' || a.name) GLOB getvariable('step_range')::VARCHAR) AS is_chosen,
        regexp_matches(a.name, '(?i)warm[-_ ]?up') AS is_named_warmup
    FROM main.annotation AS a
    WHERE getvariable('step_range') IS NOT NULL
        AND a.style NOT IN ('mark', 'gpu_projection') AND a.time_fault IS NULL
        AND (a.duration_ns IS NOT NULL OR a.is_open)
),
outermost AS (
    SELECT c.capture_id, c.annotation_id, c.process_id, c.thread_id, c.start_ns, c.end_ns
    FROM ranges AS c
    WHERE c.is_chosen
    QUALIFY coalesce(c.end_ns > max(c.end_ns) OVER (
        PARTITION BY c.capture_id, c.process_id, c.thread_id
        ORDER BY c.start_ns, c.end_ns DESC, c.depth, c.annotation_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ), true)
),
inside AS (
    SELECT DISTINCT o.capture_id, o.annotation_id
    FROM outermost AS o
    INNER JOIN ranges AS w
        ON w.capture_id = o.capture_id
        AND w.process_id IS NOT DISTINCT FROM o.process_id AND w.thread_id IS NOT DISTINCT FROM o.thread_id
        AND w.start_ns <= o.start_ns AND w.end_ns >= o.end_ns
    WHERE w.is_named_warmup AND NOT coalesce(w.is_chosen, false)
)
SELECT
    o.capture_id, o.annotation_id, o.process_id, o.thread_id, o.start_ns,
    i.annotation_id IS NOT NULL
        AND count(i.annotation_id) OVER (PARTITION BY o.capture_id) < count(*) OVER (PARTITION BY o.capture_id)
        AS is_warmup
FROM outermost AS o
LEFT JOIN inside AS i ON i.capture_id = o.capture_id AND i.annotation_id = o.annotation_id;
