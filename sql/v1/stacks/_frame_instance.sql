-- Python frames as if they were ranges, in the place of v1._range_instance. Grain: frame. Warm-up follows the same rule:
-- frames inside a range named warmup; in a capture that has no such range and marks no steps, the first of several frames
-- of a name on a thread.
CREATE VIEW v1._frame_instance AS
WITH warm AS (
    SELECT
        a.capture_id, a.process_id, a.thread_id, a.start_ns,
        max(coalesce(a.start_ns + a.duration_ns, 9223372036854775807)) AS end_ns
    FROM main.annotation AS a
    WHERE regexp_matches(a.name, '(?i)warm[-_ ]?up') AND a.style NOT IN ('mark', 'gpu_projection') AND a.time_fault IS NULL
    GROUP BY a.capture_id, a.process_id, a.thread_id, a.start_ns
),
marked AS (
    SELECT w.capture_id
    FROM warm AS w
    UNION
    SELECT s.capture_id
    FROM v1._step AS s
    WHERE s.marked_step IS NOT NULL
)
SELECT
    f.capture_id, f.frame_id AS annotation_id,
    c.source, c.rank, c.labels,
    f.name, NULL::VARCHAR AS domain, f.kind AS style, f.process_id, f.thread_id,
    f.start_ns, f.duration_ns, f.duration_ns IS NULL AS is_open, f.parent_id,
    CASE
        WHEN m.capture_id IS NOT NULL THEN coalesce(w.end_ns >= f.start_ns, false)
        ELSE row_number() OVER (instances ORDER BY f.start_ns, f.frame_id) = 1 AND count(*) OVER instances > 1
    END AS is_warmup
FROM main.frame AS f
LEFT JOIN main.capture AS c ON c.capture_id = f.capture_id
LEFT JOIN marked AS m ON m.capture_id = f.capture_id
ASOF LEFT JOIN warm AS w
    ON w.capture_id = f.capture_id AND v1._asof_key(w.process_id) = v1._asof_key(f.process_id)
    AND v1._asof_key(w.thread_id) = v1._asof_key(f.thread_id) AND w.start_ns <= f.start_ns
WINDOW instances AS (PARTITION BY f.capture_id, f.name, f.kind, f.process_id, f.thread_id);
