-- Which kernels ran, of which class, launched by what, and in which step?
-- Grain: kernel. Method: the rows of kind 'kernel' of v1._shown_event, each with its operator, launch, step and overlaps.
-- Nothing here groups or sorts kernels, so that the first rows come at once. The join to steps comes last: the optimiser
-- drops only the last one of a chain of joins where none of its columns is read, and this is the expensive one.
CREATE VIEW v1.kernels AS
SELECT
    e.capture_id, e.event_id, e.source, e.rank, e.labels, e.vendor,
    e.device_id, e.context_id, e.queue_id, e.stream_id,
    e.name, e.class, e.start_ns, e.duration_ns, e.end_ns,
    coalesce(q.clipped_duration_ns, e.duration_ns) AS clipped_duration_ns,
    v.event_id IS NOT NULL AS overlaps_prev,
    o.name AS op_name, o.input_dims, e.collective, s.step, s.step_index,
    l.name AS launch_name, l.process_id AS launch_process_id, l.thread_id AS launch_thread_id,
    e.correlation_id, e.launch_id, e.op_id, e.graph_id, e.graph_node_id,
    e.grid_x, e.grid_y, e.grid_z, e.block_x, e.block_y, e.block_z,
    e.registers_per_thread, e.static_shared_bytes, e.dynamic_shared_bytes, e.shared_bytes, e.occupancy_percent,
    e.message_in_elements, e.message_out_elements, e.dtype,
    e.group_name, e.group_size, e.group_ranks, e.sequence,
    e.time_fault,
    e.short_name
FROM v1._shown_event AS e
LEFT JOIN main.clipped_event AS q ON q.capture_id = e.capture_id AND q.event_id = e.event_id
LEFT JOIN main.overlapping_kernel AS v ON v.capture_id = e.capture_id AND v.event_id = e.event_id
LEFT JOIN main.launch AS l ON l.capture_id = e.capture_id AND l.launch_id = e.launch_id
LEFT JOIN main.op AS o ON o.capture_id = e.capture_id AND o.op_id = e.op_id
LEFT JOIN v1._step_kernel AS s ON s.capture_id = e.capture_id AND s.event_id = e.event_id
WHERE e.kind = 'kernel';

COMMENT ON VIEW v1.kernels IS 'Every kernel with its class, operator and step. Excludes kernels of graph replays that were recorded only as a whole. Includes kernels with impossible times, marked by time_fault; all other views exclude those. Grain: kernel.';
COMMENT ON COLUMN v1.kernels.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN v1.kernels.event_id IS 'Number of the event within the capture (kernel_event.event_id). [-]';
COMMENT ON COLUMN v1.kernels.source IS 'Profiler or format of the capture: torch, nsys, rocprofv3, rocpd, or the name that a third-party ingester gives.';
COMMENT ON COLUMN v1.kernels.rank IS 'Rank of the capture; NULL if unknown. [-]';
COMMENT ON COLUMN v1.kernels.labels IS 'Labels of the capture: sweep, threads, channels and others.';
COMMENT ON COLUMN v1.kernels.vendor IS 'Vendor of the device: NVIDIA, AMD or another.';
COMMENT ON COLUMN v1.kernels.device_id IS 'Device number within the capture. [-]';
COMMENT ON COLUMN v1.kernels.context_id IS 'CUDA context. [-]';
COMMENT ON COLUMN v1.kernels.queue_id IS 'Hardware queue (AMD). [-]';
COMMENT ON COLUMN v1.kernels.stream_id IS 'Stream number; unique only per device and context. [-]';
COMMENT ON COLUMN v1.kernels.name IS 'Kernel name as recorded.';
COMMENT ON COLUMN v1.kernels.class IS 'Class of the kernel: by the user''s rules; else collective, if collective arguments were recorded; else by the built-in rules.';
COMMENT ON COLUMN v1.kernels.start_ns IS 'Start on the device, on the capture''s clock. [ns]';
COMMENT ON COLUMN v1.kernels.duration_ns IS 'Duration as recorded. [ns]';
COMMENT ON COLUMN v1.kernels.end_ns IS 'End on the device, on the capture''s clock. [ns]';
COMMENT ON COLUMN v1.kernels.clipped_duration_ns IS 'Duration cut at the next start on the same queue (AMD only; otherwise as recorded). [ns]';
COMMENT ON COLUMN v1.kernels.overlaps_prev IS 'Whether it starts before an earlier kernel on its stream (AMD: hardware queue) has ended.';
COMMENT ON COLUMN v1.kernels.op_name IS 'Innermost framework operator that launched the kernel; NULL if none or not recorded.';
COMMENT ON COLUMN v1.kernels.input_dims IS 'Input shapes of that operator, as JSON text as recorded; NULL if shapes were not recorded.';
COMMENT ON COLUMN v1.kernels.collective IS 'Name of the collective as recorded with the event; NULL if not recorded.';
COMMENT ON COLUMN v1.kernels.step IS 'Step number: N of the ProfilerStep#N that contains the launch (the start, if launches were not recorded), or the index, from 0, of the range that the variable step_range selects as steps; NULL outside steps. [-]';
COMMENT ON COLUMN v1.kernels.step_index IS 'Position of that step among the steps of the capture, from 1. [-]';
COMMENT ON COLUMN v1.kernels.launch_name IS 'API call that launched the kernel, such as cudaLaunchKernel.';
COMMENT ON COLUMN v1.kernels.launch_process_id IS 'Process that launched the kernel. [-]';
COMMENT ON COLUMN v1.kernels.launch_thread_id IS 'Thread that launched the kernel. [-]';
COMMENT ON COLUMN v1.kernels.correlation_id IS 'Profiler''s id that links the API call and the GPU activity; unique at most within a process. [-]';
COMMENT ON COLUMN v1.kernels.launch_id IS 'Launch (launch.launch_id); NULL if not recorded. [-]';
COMMENT ON COLUMN v1.kernels.op_id IS 'Operator (op.op_id); NULL if none or not recorded. [-]';
COMMENT ON COLUMN v1.kernels.graph_id IS 'CUDA or HIP graph, where recorded. [-]';
COMMENT ON COLUMN v1.kernels.graph_node_id IS 'Node of the graph, where recorded. [-]';
COMMENT ON COLUMN v1.kernels.grid_x IS 'Grid size, x. [blocks]';
COMMENT ON COLUMN v1.kernels.grid_y IS 'Grid size, y. [blocks]';
COMMENT ON COLUMN v1.kernels.grid_z IS 'Grid size, z. [blocks]';
COMMENT ON COLUMN v1.kernels.block_x IS 'Block size, x. [threads]';
COMMENT ON COLUMN v1.kernels.block_y IS 'Block size, y. [threads]';
COMMENT ON COLUMN v1.kernels.block_z IS 'Block size, z. [threads]';
COMMENT ON COLUMN v1.kernels.registers_per_thread IS 'Registers per thread. [count]';
COMMENT ON COLUMN v1.kernels.static_shared_bytes IS 'Static shared memory per block. [bytes]';
COMMENT ON COLUMN v1.kernels.dynamic_shared_bytes IS 'Dynamic shared memory per block. [bytes]';
COMMENT ON COLUMN v1.kernels.shared_bytes IS 'Shared memory per block, static and dynamic together. [bytes]';
COMMENT ON COLUMN v1.kernels.occupancy_percent IS 'Achieved occupancy as estimated by the profiler, 0 to 100. [percent]';
COMMENT ON COLUMN v1.kernels.message_in_elements IS 'Input elements of the collective on this rank. [count]';
COMMENT ON COLUMN v1.kernels.message_out_elements IS 'Output elements of the collective on this rank. [count]';
COMMENT ON COLUMN v1.kernels.dtype IS 'Element type of the collective as recorded.';
COMMENT ON COLUMN v1.kernels.group_name IS 'Process group of the collective.';
COMMENT ON COLUMN v1.kernels.group_size IS 'Number of ranks in the process group. [count]';
COMMENT ON COLUMN v1.kernels.group_ranks IS 'Ranks of the process group, as JSON text as recorded.';
COMMENT ON COLUMN v1.kernels.sequence IS 'Sequence number of the collective in its group. [-]';
COMMENT ON COLUMN v1.kernels.time_fault IS 'Why the times are impossible, such as far_from_others, too_long or before_launch; NULL if they are plausible. Exclude such kernels from sums and spans (WHERE time_fault IS NULL).';
COMMENT ON COLUMN v1.kernels.short_name IS 'Kernel name without return type, namespaces, template arguments and parameters, like nsys''s shortName.';
