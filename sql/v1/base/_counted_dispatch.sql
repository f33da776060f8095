-- Every dispatch with its hardware counters as columns, and the cycles that its GPU had available during its time.
-- Grain: dispatch with counters. A counter that was not collected is NULL. The cycles of the device are compute units ×
-- maximum clock × duration; if the device ran at a lower clock, utilization is underestimated.
CREATE VIEW v1._counted_dispatch AS
WITH pivoted AS (
    SELECT
        n.capture_id,
        n.event_id,
        map_from_entries(list((n.name, n.value) ORDER BY n.name)) AS counters,
        max(n.value) FILTER (n.name = 'SQ_WAVES') AS sq_waves,
        max(n.value) FILTER (n.name = 'SQ_WAVE_CYCLES') AS sq_wave_cycles,
        max(n.value) FILTER (n.name = 'SQ_BUSY_CU_CYCLES') AS sq_busy_cu_cycles,
        max(n.value) FILTER (n.name = 'SQ_INSTS_MFMA') AS sq_insts_mfma
    FROM main.counter AS n
    GROUP BY n.capture_id, n.event_id
),
gpus AS (
    SELECT d.capture_id, d.device_id, max(d.sm_count) AS sm_count, max(d.max_clock_mhz) AS max_clock_mhz
    FROM main.device AS d
    GROUP BY d.capture_id, d.device_id
)
SELECT
    p.capture_id,
    p.event_id,
    p.counters,
    p.sq_waves,
    p.sq_wave_cycles,
    p.sq_busy_cu_cycles,
    p.sq_insts_mfma,
    g.sm_count,
    g.max_clock_mhz,
    CASE WHEN p.sq_busy_cu_cycles IS NOT NULL AND e.duration_ns > 0 AND e.time_fault IS NULL
        THEN e.duration_ns::DOUBLE * g.max_clock_mhz * g.sm_count / 1000
    END AS available_cu_cycles
FROM pivoted AS p
INNER JOIN main.kernel_event AS e ON e.capture_id = p.capture_id AND e.event_id = p.event_id
LEFT JOIN gpus AS g ON g.capture_id = e.capture_id AND g.device_id = e.device_id;
