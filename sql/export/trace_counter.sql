-- The counters of a capture: bytes of the framework's allocator, hardware counters at the start of their dispatch, and
-- clocks, power and temperature of the devices.
-- In:  as in trace_cpu.sql. A hardware counter is a sum over its dispatch; between dispatches its value is unknown.
-- Readings of a device are limited to the slices of its capture, since `tracedb watch` may record for hours.
WITH span AS (
    SELECT min(s.start_ns) AS from_ns, max(s.end_ns) AS to_ns
    FROM temp.trace_slice AS s
    WHERE s.capture_id = getvariable('trace_capture')
),

samples AS (
    SELECT
        m.capture_id, m.start_ns AS recorded_ns, NULL AS start_ns, m.memory_event_id AS ordinal, false AS is_reading,
        CASE m.device_type WHEN 0 THEN 'CPU' ELSE coalesce('GPU ' || m.device_id, 'unknown GPU') END || ' ' || v.name AS name,
        v.value,
        'bytes' AS unit
    FROM main.memory_event AS m
    INNER JOIN temp.trace_bound AS b ON b.capture_id = m.capture_id AND m.start_ns BETWEEN b.from_ns AND b.to_ns
    CROSS JOIN LATERAL (
        SELECT 'allocated' AS name, m.total_allocated_bytes::DOUBLE AS value
        UNION ALL
        SELECT 'reserved', m.total_reserved_bytes::DOUBLE
    ) AS v
    WHERE m.capture_id = getvariable('trace_capture') AND NOT getvariable('trace_part')
    UNION ALL
    SELECT
        s.capture_id, NULL, s.start_ns, s.n, false,
        coalesce('GPU ' || s.device_id, 'unknown GPU') || ' ' || h.name,
        h.value,
        NULL
    FROM main.counter AS h
    INNER JOIN temp.trace_slice AS s ON s.capture_id = h.capture_id AND s.kind = 'gpu' AND s.row_id = h.event_id
    WHERE h.capture_id = getvariable('trace_capture')
    UNION ALL
    SELECT
        d.capture_id, d.time_ns, NULL, v.ordinal, true,
        'GPU ' || d.device_id || ' ' || v.name,
        v.value,
        v.unit
    FROM v1._condition AS d
    CROSS JOIN LATERAL (
        SELECT 1 AS ordinal, 'SM clock' AS name, d.sm_clock_mhz AS value, 'MHz' AS unit
        UNION ALL
        SELECT 2, 'memory clock', d.memory_clock_mhz, 'MHz'
        UNION ALL
        SELECT 3, 'power', d.power_w, 'W'
        UNION ALL
        SELECT 4, 'temperature', d.temperature_c, '°C'
    ) AS v
    WHERE
        d.capture_id = getvariable('trace_capture')
        AND d.device_id IN (SELECT e.device_id FROM temp.trace_event AS e WHERE e.capture_id = d.capture_id)
),

placed AS (
    SELECT
        a.name, a.unit, a.value, a.ordinal, a.is_reading, p.pid,
        coalesce(
            a.start_ns,
            -- A reading from long before or after the capture, which is not shown, may be beyond 64 bits.
            TRY_CAST(
                a.recorded_ns::HUGEINT + c.move_ns
                - CASE c.stretch WHEN 0 THEN 0 ELSE round((a.recorded_ns - c.fixed_ns) * c.stretch)::BIGINT END
                AS BIGINT
            )
        ) AS start_ns
    FROM samples AS a
    INNER JOIN temp.trace_process AS p ON p.capture_id = a.capture_id
    INNER JOIN temp.trace_clock AS c ON c.capture_id = a.capture_id
    WHERE isfinite(a.value)
)

SELECT
    name, unit, pid, start_ns,
    format('{}.{:03d}', start_ns // 1000, start_ns % 1000) AS ts,
    value
FROM placed
CROSS JOIN span
WHERE start_ns IS NOT NULL AND NOT is_reading OR start_ns BETWEEN from_ns AND to_ns
ORDER BY name, start_ns, ordinal;
