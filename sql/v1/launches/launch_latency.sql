-- How long does it take from the API call to the kernel: in the call, in the queue, in the kernel?
-- Grain: kernel whose launch was recorded. Same method as nsys stats cuda_kern_exec_sum, per kernel. A kernel that
-- starts before its call has returned was not queued: queue_ns is NULL.
CREATE VIEW v1.launch_latency AS
SELECT
    /* by e */
    e.capture_id, e.rank, e.labels, e.device_id, e.stream_id,
    e.event_id, e.name, e.class,
    l.name AS launch_name, l.process_id, l.thread_id,
    l.start_ns AS launch_start_ns,
    l.duration_ns AS launch_ns,
    CASE WHEN e.start_ns >= l.start_ns + l.duration_ns THEN e.start_ns - l.start_ns - l.duration_ns END AS queue_ns,
    e.duration_ns AS kernel_ns,
    e.start_ns - l.start_ns AS latency_ns,
    greatest(l.start_ns + l.duration_ns, e.end_ns) - l.start_ns AS total_ns,
    e.short_name
FROM v1._gpu_event AS e /* join e */
INNER JOIN v1._timed_launch AS l ON l.capture_id = e.capture_id AND l.launch_id = e.launch_id
WHERE e.kind = 'kernel' /* filter e */;

COMMENT ON VIEW v1.launch_latency IS 'Launch latency: time in the API call, in the queue and in the kernel. Grain: kernel whose launch was recorded.';
COMMENT ON COLUMN v1.launch_latency.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN v1.launch_latency.rank IS 'Rank of the capture; NULL if unknown. [-]';
COMMENT ON COLUMN v1.launch_latency.labels IS 'Labels of the capture: sweep, threads, channels and others.';
COMMENT ON COLUMN v1.launch_latency.device_id IS 'Device number within the capture. [-]';
COMMENT ON COLUMN v1.launch_latency.stream_id IS 'Stream number; unique only per device and context. [-]';
COMMENT ON COLUMN v1.launch_latency.event_id IS 'The kernel (kernel_event.event_id). [-]';
COMMENT ON COLUMN v1.launch_latency.name IS 'Kernel name as recorded.';
COMMENT ON COLUMN v1.launch_latency.class IS 'Class of the kernel: matmul, collective, elementwise …';
COMMENT ON COLUMN v1.launch_latency.launch_name IS 'API call that launched the kernel.';
COMMENT ON COLUMN v1.launch_latency.process_id IS 'Process that launched the kernel. [-]';
COMMENT ON COLUMN v1.launch_latency.thread_id IS 'Thread that launched the kernel. [-]';
COMMENT ON COLUMN v1.launch_latency.launch_start_ns IS 'Start of the call, on the capture''s clock. [ns]';
COMMENT ON COLUMN v1.launch_latency.launch_ns IS 'Duration of the call. [ns]';
COMMENT ON COLUMN v1.launch_latency.queue_ns IS 'From the end of the call to the start of the kernel; NULL if the kernel started earlier. [ns]';
COMMENT ON COLUMN v1.launch_latency.kernel_ns IS 'Duration of the kernel. [ns]';
COMMENT ON COLUMN v1.launch_latency.latency_ns IS 'From the start of the call to the start of the kernel. [ns]';
COMMENT ON COLUMN v1.launch_latency.total_ns IS 'From the start of the call to the end of the kernel, or of the call if that is later. [ns]';
COMMENT ON COLUMN v1.launch_latency.short_name IS 'Kernel name without return type, namespaces, template arguments and parameters, like nsys''s shortName.';
