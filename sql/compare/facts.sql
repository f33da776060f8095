-- Adds the properties of one side of a comparison, which decide whether it can be compared with another one.
-- In:  {db}: the database of the side; {side}: its number; temp tables side_capture, side_marked, side_unit, side_run
--      (side.sql).
-- Out: one more row of temp table side_fact: digests of its captures, whether its units are steps, the number of units,
--      the numbers of GPUs with events in a run (a text), the most in one capture, the names of these GPUs, the profilers.
INSERT INTO side_fact
WITH gpus AS (
    SELECT e.capture_id, coalesce(e.device_id, -1) AS device_id
    FROM {db}.main.kernel_event AS e
    SEMI JOIN side_capture AS c ON c.capture_id = e.capture_id
    WHERE e.kind = 'kernel'
    GROUP BY ALL
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
    ) AS profilers;
