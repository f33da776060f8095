-- Adds the properties of one side of a comparison, which decide whether it can be compared with another one.
-- In:  {db}: the database of the side; {side}: its number; temp tables side_capture, side_marked, side_unit, side_run
--      (side.sql).
-- Out: one more row of temp table side_fact: digests of its captures, whether its units are steps, the number of units,
--      the numbers of GPUs with events in a run (a text), the most in one capture, the names of these GPUs, the
--      profilers, how many ranges are no steps because they are warm-up, and the ranges that repeat in each of its
--      captures, with their number outside of warm-up and their time.
INSERT INTO side_fact
WITH gpus AS (
    SELECT e.capture_id, coalesce(e.device_id, -1) AS device_id
    FROM {db}.main.kernel_event AS e
    SEMI JOIN side_capture AS c ON c.capture_id = e.capture_id
    WHERE e.kind = 'kernel'
    GROUP BY ALL
),

-- A range is warm-up if it is, or is inside, a range named warmup (as in v1._range_instance).
ranges AS (
    SELECT
        a.capture_id, a.annotation_id, a.name, a.domain, a.duration_ns,
        coalesce(a.start_ns < max(a.start_ns + a.duration_ns) FILTER (regexp_matches(a.name, '(?i)warm[-_ ]?up')) OVER (
            PARTITION BY a.capture_id, a.process_id, a.thread_id
            ORDER BY a.start_ns, a.duration_ns DESC, a.annotation_id ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ), false) AS is_warmup
    FROM {db}.main.annotation AS a
    SEMI JOIN side_capture AS s ON s.capture_id = a.capture_id
    WHERE a.style NOT IN ('mark', 'gpu_projection') AND a.time_fault IS NULL AND a.duration_ns IS NOT NULL
)

SELECT
    {side} AS side,
    (
        SELECT list(DISTINCT c.sha256 || '/' || coalesce(c.part, 0) ORDER BY c.sha256 || '/' || coalesce(c.part, 0))
        FROM {db}.main.capture AS c
        SEMI JOIN side_capture AS s ON s.capture_id = c.capture_id
    ) AS digests,
    (SELECT m.by_step FROM side_marked AS m) AS by_step,
    (SELECT count(*) FROM side_unit AS u WHERE u.side = {side}) AS units,
    (
        SELECT array_to_string(list(DISTINCT r.gpus ORDER BY r.gpus), ', ')
        FROM (
            SELECT count(*) AS gpus
            FROM gpus AS g
            INNER JOIN side_run AS r ON r.side = {side} AND r.capture_id = g.capture_id
            GROUP BY r.run
        ) AS r
    ) AS gpus,
    (SELECT max(devices) FROM (SELECT count(*) AS devices FROM gpus GROUP BY capture_id)) AS gpus_of_capture,
    (
        SELECT list(DISTINCT d.name ORDER BY d.name)
        FROM gpus AS g
        INNER JOIN {db}.main.device AS d ON d.capture_id = g.capture_id AND d.device_id = g.device_id
        WHERE d.name IS NOT NULL
    ) AS models,
    (
        SELECT list(DISTINCT c.source ORDER BY c.source)
        FROM {db}.main.capture AS c
        SEMI JOIN side_capture AS s ON s.capture_id = c.capture_id
    ) AS profilers,
    (
        SELECT count(*)
        FROM ranges AS r
        WHERE r.is_warmup AND (
                r.name GLOB getvariable('step_range')::VARCHAR
                OR (r.domain || ':' || r.name) GLOB getvariable('step_range')::VARCHAR
            )
            AND NOT EXISTS (
                SELECT 1 FROM {db}.v1._step_range AS t
                WHERE t.capture_id = r.capture_id AND t.annotation_id = r.annotation_id AND t.step IS NOT NULL
            )
    ) AS warmup_steps,
    (
        SELECT list({'name': i.name, 'instances': i.instances, 'time_ns': i.time_ns})
        FROM (
            SELECT r.name, count(*) AS instances, sum(r.duration_ns) AS time_ns
            FROM ranges AS r
            WHERE NOT r.is_warmup
            GROUP BY r.name
            HAVING count(DISTINCT r.capture_id) = (SELECT count(*) FROM side_capture) AND instances > count(DISTINCT r.capture_id)
        ) AS i
    ) AS repeated_ranges;
