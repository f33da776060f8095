-- Every range with a start and an end, and whether it is warm-up.
-- Grain: range. A range is warm-up if it is, or is inside, a range named warmup, warm-up or warm_up. If a capture has
-- no such range and marks no steps, the first of several instances of a name on a thread is warm-up, because it pays
-- for loading and selecting kernels. Captures with steps (ProfilerStep#N) come from a profiler that was started after
-- the warm-up. UNION, not UNION ALL, so that a cycle of parents in a damaged file ends.
CREATE VIEW v1._range_instance AS
WITH RECURSIVE warm AS (
    SELECT a.capture_id, a.annotation_id
    FROM main.annotation AS a
    WHERE regexp_matches(a.name, '(?i)warm[-_ ]?up') AND a.style NOT IN ('mark', 'gpu_projection') AND a.time_fault IS NULL
    UNION
    SELECT a.capture_id, a.annotation_id
    FROM warm AS w
    INNER JOIN main.annotation AS a ON a.capture_id = w.capture_id AND a.parent_id = w.annotation_id
),
marked AS (
    SELECT f.capture_id
    FROM (
        SELECT w.capture_id
        FROM warm AS w
        UNION ALL
        SELECT s.capture_id
        FROM v1._step AS s
        WHERE s.marked_step IS NOT NULL
    ) AS f
    GROUP BY f.capture_id
)
SELECT
    r.capture_id, r.annotation_id,
    r.source, r.rank, r.labels,
    r.name, r.domain, r.style, r.process_id, r.thread_id,
    r.start_ns, r.duration_ns, r.is_open, r.parent_id, r.depth,
    CASE
        WHEN m.capture_id IS NOT NULL THEN w.annotation_id IS NOT NULL
        ELSE row_number() OVER (instances ORDER BY r.start_ns, r.annotation_id) = 1 AND count(*) OVER instances > 1
    END AS is_warmup
FROM v1._range AS r
LEFT JOIN warm AS w ON w.capture_id = r.capture_id AND w.annotation_id = r.annotation_id
LEFT JOIN marked AS m ON m.capture_id = r.capture_id
WHERE r.style NOT IN ('mark', 'python_function')
WINDOW instances AS (PARTITION BY r.capture_id, r.domain, r.name, r.style, r.process_id, r.thread_id);
