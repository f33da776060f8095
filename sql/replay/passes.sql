-- Finds the passes of a capture that are replayed: its steps, ranges of a name, or the capture as a whole.
-- In:  variables replay_capture, replay_step (NULL for every step), replay_range (a GLOB, else NULL). Of ranges inside
--      each other the outermost counts, and none that is warm-up.
-- Out: temp table replay_range(pass, annotation_id), NULL for the whole capture; temp table
--      replay_bound(pass, name, step, start_ns, end_ns), the times NULL for the whole capture.
CREATE OR REPLACE TEMP TABLE replay_range AS
WITH named AS (
    SELECT r.annotation_id, r.name, r.process_id, r.thread_id, r.start_ns, r.start_ns + r.duration_ns AS end_ns
    FROM v1._range_instance AS r
    WHERE r.capture_id = getvariable('replay_capture')
        AND r.name GLOB getvariable('replay_range')::VARCHAR
        AND NOT r.is_warmup AND r.duration_ns IS NOT NULL
),
outermost AS (
    SELECT n.annotation_id, n.name, n.start_ns
    FROM named AS n
    QUALIFY coalesce(n.end_ns > max(n.end_ns) OVER (
        PARTITION BY n.process_id, n.thread_id
        ORDER BY n.start_ns, n.end_ns DESC, n.annotation_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ), true)
),
found AS (
    SELECT s.annotation_id, s.step, 'step ' || s.step AS name, s.step AS place
    FROM v1._step AS s
    WHERE s.capture_id = getvariable('replay_capture') AND s.step IS NOT NULL
        AND getvariable('replay_range') IS NULL
        AND (getvariable('replay_step') IS NULL OR s.step = getvariable('replay_step'))
    UNION ALL
    SELECT o.annotation_id, NULL AS step, o.name, row_number() OVER (ORDER BY o.start_ns, o.annotation_id) AS place
    FROM outermost AS o
)
SELECT
    dense_rank() OVER (ORDER BY f.place)::INTEGER AS pass,
    f.annotation_id, f.step, f.name
FROM found AS f
UNION ALL
SELECT 1 AS pass, NULL AS annotation_id, NULL AS step, 'capture' AS name
WHERE NOT EXISTS (SELECT 1 FROM found)
    AND getvariable('replay_range') IS NULL AND getvariable('replay_step') IS NULL;

CREATE OR REPLACE TEMP TABLE replay_bound AS
SELECT
    p.pass,
    min(p.name) AS name,
    min(p.step) AS step,
    min(a.start_ns) AS start_ns,
    max(a.start_ns + a.duration_ns) AS end_ns
FROM temp.replay_range AS p
LEFT JOIN main.annotation AS a
    ON a.capture_id = getvariable('replay_capture') AND a.annotation_id = p.annotation_id
GROUP BY p.pass;
