-- Which hardware counters does each dispatch have?
-- Grain: dispatch with counters, so durations count once, however many counters there are. The counters introduced
-- first in AMD's guide are columns; all counters are in one map, because a view cannot have a column for every possible
-- name.
CREATE VIEW v1.kernel_counters AS
SELECT
    /* by e */
    e.capture_id, e.source, e.rank, e.labels, e.device_id, e.queue_id, e.event_id,
    e.name, e.class,
    nullif(e.start_ns, 0) AS start_ns,
    CASE WHEN e.time_fault IS NULL AND (e.start_ns <> 0 OR e.duration_ns <> 0) THEN e.duration_ns END AS duration_ns,
    c.sq_waves,
    c.sq_wave_cycles,
    c.sq_busy_cu_cycles,
    c.sq_insts_mfma,
    c.sm_count,
    c.max_clock_mhz,
    100.0 * c.sq_busy_cu_cycles / c.available_cu_cycles AS cu_busy_percent,
    c.counters,
    e.short_name
FROM v1._recorded_event AS e /* join e */
INNER JOIN v1._counted_dispatch AS c ON c.capture_id = e.capture_id AND c.event_id = e.event_id
WHERE true /* filter e */;

COMMENT ON VIEW v1.kernel_counters IS 'Hardware counters of each dispatch, with its duration during collection. Grain: dispatch with counters.';
COMMENT ON COLUMN v1.kernel_counters.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN v1.kernel_counters.source IS 'Profiler or format of the capture: rocprofv3, rocpd or another.';
COMMENT ON COLUMN v1.kernel_counters.rank IS 'Rank of the capture; NULL if unknown. [-]';
COMMENT ON COLUMN v1.kernel_counters.labels IS 'Labels of the capture: sweep, threads, channels and others.';
COMMENT ON COLUMN v1.kernel_counters.device_id IS 'Device number within the capture. [-]';
COMMENT ON COLUMN v1.kernel_counters.queue_id IS 'Hardware queue. [-]';
COMMENT ON COLUMN v1.kernel_counters.event_id IS 'Number of the dispatch within the capture (kernel_event.event_id). [-]';
COMMENT ON COLUMN v1.kernel_counters.name IS 'Kernel name as recorded.';
COMMENT ON COLUMN v1.kernel_counters.class IS 'Class of the kernel: matmul, collective, elementwise …';
COMMENT ON COLUMN v1.kernel_counters.start_ns IS 'Start on the device, on the capture''s clock; NULL if not recorded, as by Nsight Compute. [ns]';
COMMENT ON COLUMN v1.kernel_counters.duration_ns IS 'Duration while counters were collected, with kernels serialized; NULL if not recorded. [ns]';
COMMENT ON COLUMN v1.kernel_counters.sq_waves IS 'SQ_WAVES: wavefronts launched. [count]';
COMMENT ON COLUMN v1.kernel_counters.sq_wave_cycles IS 'SQ_WAVE_CYCLES: cycles that wavefronts spent in the compute units, as counted. [cycles]';
COMMENT ON COLUMN v1.kernel_counters.sq_busy_cu_cycles IS 'SQ_BUSY_CU_CYCLES: busy cycles summed over compute units; a cycle count, not a percentage. [cycles]';
COMMENT ON COLUMN v1.kernel_counters.sq_insts_mfma IS 'SQ_INSTS_MFMA: matrix instructions issued. [count]';
COMMENT ON COLUMN v1.kernel_counters.sm_count IS 'Compute units of the device; NULL if not captured. [count]';
COMMENT ON COLUMN v1.kernel_counters.max_clock_mhz IS 'Maximum clock of the compute units; NULL if not captured. [MHz]';
COMMENT ON COLUMN v1.kernel_counters.cu_busy_percent IS 'SQ_BUSY_CU_CYCLES / (compute units × maximum clock × duration); a lower bound if the GPU ran below its maximum clock. NULL if any of these was not captured. [percent]';
COMMENT ON COLUMN v1.kernel_counters.counters IS 'All counters of the dispatch by name, each in its own unit. [-]';
COMMENT ON COLUMN v1.kernel_counters.short_name IS 'Kernel name without return type, namespaces, template arguments and parameters, like nsys''s shortName.';
