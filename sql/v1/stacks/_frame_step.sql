-- Which step does a Python frame start in? In the place of v1._step_range. Grain: frame that starts inside a step.
CREATE VIEW v1._frame_step AS
SELECT f.capture_id, f.frame_id AS annotation_id, s.step, s.step_index
FROM main.frame AS f
ASOF INNER JOIN (
    SELECT
        t.capture_id, a.process_id, a.start_ns,
        max(t.step) AS step, max(t.step_index) AS step_index,
        max(coalesce(a.start_ns + a.duration_ns, 9223372036854775807)) AS end_ns
    FROM v1._step AS t
    INNER JOIN main.annotation AS a ON a.capture_id = t.capture_id AND a.annotation_id = t.annotation_id
    WHERE t.step IS NOT NULL
    GROUP BY t.capture_id, a.process_id, a.start_ns
) AS s
    ON s.capture_id = f.capture_id AND v1._asof_key(s.process_id) = v1._asof_key(f.process_id) AND s.start_ns <= f.start_ns
WHERE s.end_ns >= f.start_ns;
