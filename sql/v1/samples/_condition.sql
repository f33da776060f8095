-- In what state was a capture's device at a moment?
-- Grain: capture × device × reading, on the capture's clock. A capture has its own readings, recorded with it, and those
-- of `tracedb watch` on the same host at the same time: the same GPU by UUID, or by its number where a trace has none.
CREATE VIEW v1._condition AS
WITH watched AS (
    SELECT
        w.capture_id, w.host, w.clock_zero_unix_ns,
        d.device_id, lower(replace(replace(d.uuid, 'GPU-', ''), '-', '')) AS uuid
    FROM main.capture AS w
    INNER JOIN main.device AS d ON d.capture_id = w.capture_id
    WHERE w.source = 'conditions' AND w.clock_zero_unix_ns IS NOT NULL
),
matched AS (
    SELECT c.capture_id, g.device_id, w.capture_id AS watch_id, w.device_id AS watch_device_id,
        w.clock_zero_unix_ns - c.clock_zero_unix_ns AS shift_ns
    FROM watched AS w
    INNER JOIN main.capture AS c
        ON c.source <> 'conditions' AND c.clock_zero_unix_ns IS NOT NULL AND coalesce(c.host = w.host, true)
    INNER JOIN main.device AS g
        ON
            g.capture_id = c.capture_id
            AND coalesce(lower(replace(replace(g.uuid, 'GPU-', ''), '-', '')) = w.uuid, g.device_id = w.device_id)
)
SELECT
    r.capture_id, r.device_id, r.time_ns, r.sm_clock_mhz, r.memory_clock_mhz, r.power_w, r.temperature_c, r.throttle
FROM main.device_condition AS r
UNION ALL
SELECT
    m.capture_id, m.device_id, r.time_ns + m.shift_ns AS time_ns,
    r.sm_clock_mhz, r.memory_clock_mhz, r.power_w, r.temperature_c, r.throttle
FROM matched AS m
INNER JOIN main.device_condition AS r ON r.capture_id = m.watch_id AND r.device_id = m.watch_device_id;
