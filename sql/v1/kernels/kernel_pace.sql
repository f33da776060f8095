-- How regularly is a kernel called? Like nsys's recipe cuda_gpu_kern_pace.
-- Grain: kernel call, counted per capture and device in start order.
CREATE VIEW v1.kernel_pace AS
SELECT
    /* by e */
    e.capture_id,
    e.event_id,
    e.rank,
    e.labels,
    e.device_id,
    e.name,
    row_number() OVER calls AS call_index,
    e.start_ns,
    e.start_ns - min(e.start_ns) OVER calls AS since_first_ns,
    e.start_ns - lag(e.start_ns) OVER calls AS interval_ns,
    e.duration_ns
FROM v1._unclassed_event AS e /* join e */
WHERE e.kind = 'kernel' /* filter e */
WINDOW calls AS (
    PARTITION BY /* by e */ e.capture_id, e.device_id, e.name ORDER BY e.start_ns, e.event_id
);

COMMENT ON VIEW v1.kernel_pace IS 'Each call of a kernel with the time since the previous call, like nsys''s cuda_gpu_kern_pace. Grain: kernel call.';
COMMENT ON COLUMN v1.kernel_pace.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN v1.kernel_pace.event_id IS 'Number of the event within the capture (kernel_event.event_id). [-]';
COMMENT ON COLUMN v1.kernel_pace.rank IS 'Rank of the capture; NULL if unknown. [-]';
COMMENT ON COLUMN v1.kernel_pace.labels IS 'Labels of the capture: sweep, threads, channels and others.';
COMMENT ON COLUMN v1.kernel_pace.device_id IS 'Device number within the capture. [-]';
COMMENT ON COLUMN v1.kernel_pace.name IS 'Kernel name as recorded.';
COMMENT ON COLUMN v1.kernel_pace.call_index IS 'Index of the call of this kernel on its device, from 1, ordered by start. [-]';
COMMENT ON COLUMN v1.kernel_pace.start_ns IS 'Start on the device, on the capture''s clock. [ns]';
COMMENT ON COLUMN v1.kernel_pace.since_first_ns IS 'Start minus the start of the first call. [ns]';
COMMENT ON COLUMN v1.kernel_pace.interval_ns IS 'Start minus the start of the previous call; NULL for the first call. [ns]';
COMMENT ON COLUMN v1.kernel_pace.duration_ns IS 'Duration as recorded. [ns]';
