-- With which launch configuration, registers, shared memory and message was each kernel launched, and on what kind of
-- stream?
-- Grain: GPU event. The first start of each device is looked up, because a window over the events would sort all of them
-- with all columns. Every device has one, but an inner join would make DuckDB expect so few events that it kept all of
-- them in memory to find their streams.
CREATE VIEW v1.launch_params AS
WITH firsts AS (
    SELECT /* by e */ e.capture_id AS clock_id, e.device_id AS gpu_id, min(e.start_ns) AS first_ns
    FROM v1._unclassed_event AS e /* join e */
    WHERE e.kind IN ('kernel', 'memcpy', 'memset') /* filter e */
    GROUP BY ALL
)
SELECT
    /* by e */
    e.capture_id, e.event_id, e.source, e.rank, e.labels, e.device_id, e.context_id, e.stream_id,
    coalesce(c.category, 'compute') AS category,
    e.name, e.class,
    e.start_ns,
    e.start_ns - f.first_ns AS since_first_ns,
    e.duration_ns,
    e.grid_x, e.grid_y, e.grid_z, e.block_x, e.block_y, e.block_z,
    e.registers_per_thread, x.accum_registers_per_thread, x.scalar_registers_per_wave, x.scratch_bytes_per_thread,
    e.static_shared_bytes, e.dynamic_shared_bytes, e.shared_bytes, e.occupancy_percent,
    e.bytes, e.copy_kind, e.correlation_id, e.launch_id, e.op_id,
    e.collective, e.dtype, e.message_in_elements, e.message_out_elements, e.group_name, e.group_size, e.group_ranks
FROM v1._gpu_event AS e /* join e */
LEFT JOIN firsts AS f ON f.clock_id = e.capture_id AND f.gpu_id IS NOT DISTINCT FROM e.device_id /* using f e base */
LEFT JOIN v1._stream_category AS c ON c.capture_id = e.capture_id
    AND c.device_id IS NOT DISTINCT FROM e.device_id
    AND c.context_id IS NOT DISTINCT FROM e.context_id
    AND c.stream_id IS NOT DISTINCT FROM e.stream_id
LEFT JOIN v1._kernel_resource AS x ON x.capture_id = e.capture_id AND x.name = e.name
    AND x.registers_per_thread IS NOT DISTINCT FROM e.registers_per_thread
WHERE e.kind IN ('kernel', 'memcpy', 'memset') /* filter e */;

COMMENT ON VIEW v1.launch_params IS 'Every kernel and memory operation with its launch parameters. Grain: GPU event.';
COMMENT ON COLUMN v1.launch_params.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN v1.launch_params.event_id IS 'Number of the event within the capture (kernel_event.event_id). [-]';
COMMENT ON COLUMN v1.launch_params.source IS 'Profiler or format of the capture.';
COMMENT ON COLUMN v1.launch_params.rank IS 'Rank of the capture; NULL if unknown. [-]';
COMMENT ON COLUMN v1.launch_params.labels IS 'Labels of the capture.';
COMMENT ON COLUMN v1.launch_params.device_id IS 'Device number within the capture. [-]';
COMMENT ON COLUMN v1.launch_params.context_id IS 'CUDA context. [-]';
COMMENT ON COLUMN v1.launch_params.stream_id IS 'Stream number; unique only per device and context. [-]';
COMMENT ON COLUMN v1.launch_params.category IS 'communication if collectives take at least half of the time on its stream, else compute.';
COMMENT ON COLUMN v1.launch_params.name IS 'Name as recorded.';
COMMENT ON COLUMN v1.launch_params.class IS 'Class of the kernel; copy for copies and memsets.';
COMMENT ON COLUMN v1.launch_params.start_ns IS 'Start on the device, on the capture''s clock. [ns]';
COMMENT ON COLUMN v1.launch_params.since_first_ns IS 'Start minus the start of the device''s first event in the answer. [ns]';
COMMENT ON COLUMN v1.launch_params.duration_ns IS 'Duration. [ns]';
COMMENT ON COLUMN v1.launch_params.grid_x IS 'Grid size, x. [blocks]';
COMMENT ON COLUMN v1.launch_params.grid_y IS 'Grid size, y. [blocks]';
COMMENT ON COLUMN v1.launch_params.grid_z IS 'Grid size, z. [blocks]';
COMMENT ON COLUMN v1.launch_params.block_x IS 'Block size, x. [threads]';
COMMENT ON COLUMN v1.launch_params.block_y IS 'Block size, y. [threads]';
COMMENT ON COLUMN v1.launch_params.block_z IS 'Block size, z. [threads]';
COMMENT ON COLUMN v1.launch_params.registers_per_thread IS 'Registers per thread. [count]';
COMMENT ON COLUMN v1.launch_params.accum_registers_per_thread IS 'Accumulation vector registers per work-item (AMD); NULL if not recorded, or if kernels of its name and registers differ in them. [count]';
COMMENT ON COLUMN v1.launch_params.scalar_registers_per_wave IS 'Scalar registers per wavefront (AMD); NULL as before. [count]';
COMMENT ON COLUMN v1.launch_params.scratch_bytes_per_thread IS 'Scratch memory per work-item (AMD); NULL as before. [bytes]';
COMMENT ON COLUMN v1.launch_params.static_shared_bytes IS 'Static shared memory per block. [bytes]';
COMMENT ON COLUMN v1.launch_params.dynamic_shared_bytes IS 'Dynamic shared memory per block. [bytes]';
COMMENT ON COLUMN v1.launch_params.shared_bytes IS 'Shared memory per block, static and dynamic together. [bytes]';
COMMENT ON COLUMN v1.launch_params.occupancy_percent IS 'Achieved occupancy as estimated by the profiler, 0 to 100. [percent]';
COMMENT ON COLUMN v1.launch_params.bytes IS 'Bytes copied or set. [bytes]';
COMMENT ON COLUMN v1.launch_params.copy_kind IS 'Direction of a copy.';
COMMENT ON COLUMN v1.launch_params.correlation_id IS 'Profiler''s id that links the API call and the GPU activity. [-]';
COMMENT ON COLUMN v1.launch_params.launch_id IS 'Launch (launch.launch_id); NULL if not recorded. [-]';
COMMENT ON COLUMN v1.launch_params.op_id IS 'Operator (op.op_id); NULL if none or not recorded. [-]';
COMMENT ON COLUMN v1.launch_params.collective IS 'Name of the collective as recorded with the event; NULL if not recorded.';
COMMENT ON COLUMN v1.launch_params.dtype IS 'Element type of the collective as recorded.';
COMMENT ON COLUMN v1.launch_params.message_in_elements IS 'Input elements of the collective on this rank. [count]';
COMMENT ON COLUMN v1.launch_params.message_out_elements IS 'Output elements of the collective on this rank. [count]';
COMMENT ON COLUMN v1.launch_params.group_name IS 'Process group of the collective.';
COMMENT ON COLUMN v1.launch_params.group_size IS 'Number of ranks in the process group. [count]';
COMMENT ON COLUMN v1.launch_params.group_ranks IS 'Ranks of the process group, as JSON text as recorded.';
