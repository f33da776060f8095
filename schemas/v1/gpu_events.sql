-- What the GPU did: kernels, copies and graph replays; collectives, hardware counters and memory. One row per recorded event.

CREATE TABLE main.kernel_event (
    capture_id INTEGER NOT NULL,
    event_id BIGINT NOT NULL,
    kind VARCHAR NOT NULL CHECK (kind IN ('kernel', 'memcpy', 'memset', 'graph')),
    name VARCHAR NOT NULL,
    start_ns BIGINT NOT NULL,
    duration_ns BIGINT NOT NULL CHECK (duration_ns >= 0),
    device_id INTEGER,
    stream_id BIGINT,
    queue_id BIGINT,
    context_id BIGINT,
    correlation_id BIGINT,
    launch_id BIGINT,
    op_id BIGINT,
    graph_id BIGINT,
    graph_node_id BIGINT,
    grid_x BIGINT,
    grid_y BIGINT,
    grid_z BIGINT,
    block_x BIGINT,
    block_y BIGINT,
    block_z BIGINT,
    registers_per_thread INTEGER,
    static_shared_bytes BIGINT,
    dynamic_shared_bytes BIGINT,
    shared_bytes BIGINT,
    occupancy_percent DOUBLE,
    bytes BIGINT,
    copy_kind VARCHAR,
    collective VARCHAR,
    message_in_elements BIGINT,
    message_out_elements BIGINT,
    message_in_splits VARCHAR,
    dtype VARCHAR,
    group_name VARCHAR,
    group_size INTEGER,
    group_ranks VARCHAR,
    sequence BIGINT,
    call_id BIGINT,
    is_counted BOOLEAN,
    time_fault VARCHAR
);
COMMENT ON TABLE main.kernel_event IS 'One GPU activity: a kernel, a copy, a memset or a graph replay recorded as a whole.';
COMMENT ON COLUMN main.kernel_event.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN main.kernel_event.event_id IS 'Number of the event within the capture. [-]';
COMMENT ON COLUMN main.kernel_event.kind IS 'kernel, memcpy, memset or graph.';
COMMENT ON COLUMN main.kernel_event.name IS 'Name as recorded, demangled if the profiler demangled it.';
COMMENT ON COLUMN main.kernel_event.start_ns IS 'Start on the device, on the capture''s clock. [ns]';
COMMENT ON COLUMN main.kernel_event.duration_ns IS 'Duration as recorded. [ns]';
COMMENT ON COLUMN main.kernel_event.device_id IS 'Device number within the capture. [-]';
COMMENT ON COLUMN main.kernel_event.stream_id IS 'Stream number; unique only per device and context. [-]';
COMMENT ON COLUMN main.kernel_event.queue_id IS 'Hardware queue (AMD). [-]';
COMMENT ON COLUMN main.kernel_event.context_id IS 'CUDA context. [-]';
COMMENT ON COLUMN main.kernel_event.correlation_id IS 'Profiler''s id that links the API call and the GPU activity; unique at most within a process. [-]';
COMMENT ON COLUMN main.kernel_event.launch_id IS 'The API call that launched it; NULL if not recorded. [-]';
COMMENT ON COLUMN main.kernel_event.op_id IS 'The innermost framework operator that launched it; NULL if none or not recorded. [-]';
COMMENT ON COLUMN main.kernel_event.graph_id IS 'CUDA or HIP graph, where recorded. [-]';
COMMENT ON COLUMN main.kernel_event.graph_node_id IS 'Node of the graph, where recorded. [-]';
COMMENT ON COLUMN main.kernel_event.grid_x IS 'Grid size in blocks (workgroups), x. [blocks]';
COMMENT ON COLUMN main.kernel_event.grid_y IS 'Grid size in blocks (workgroups), y. [blocks]';
COMMENT ON COLUMN main.kernel_event.grid_z IS 'Grid size in blocks (workgroups), z. [blocks]';
COMMENT ON COLUMN main.kernel_event.block_x IS 'Block size in threads (work-items), x. [threads]';
COMMENT ON COLUMN main.kernel_event.block_y IS 'Block size in threads (work-items), y. [threads]';
COMMENT ON COLUMN main.kernel_event.block_z IS 'Block size in threads (work-items), z. [threads]';
COMMENT ON COLUMN main.kernel_event.registers_per_thread IS 'Registers per thread. [count]';
COMMENT ON COLUMN main.kernel_event.static_shared_bytes IS 'Static shared memory per block; NULL where only the sum is recorded. [bytes]';
COMMENT ON COLUMN main.kernel_event.dynamic_shared_bytes IS 'Dynamic shared memory per block; NULL where only the sum is recorded. [bytes]';
COMMENT ON COLUMN main.kernel_event.shared_bytes IS 'Shared memory per block, static and dynamic together. [bytes]';
COMMENT ON COLUMN main.kernel_event.occupancy_percent IS 'Achieved occupancy as estimated by the profiler, 0 to 100. [percent]';
COMMENT ON COLUMN main.kernel_event.bytes IS 'Bytes copied or set. [bytes]';
COMMENT ON COLUMN main.kernel_event.copy_kind IS 'Direction of a copy: HtoD, DtoH, DtoD, HtoH, PtoP.';
COMMENT ON COLUMN main.kernel_event.collective IS 'Name of the collective as recorded with the event (allreduce, _allgather_base …).';
COMMENT ON COLUMN main.kernel_event.message_in_elements IS 'Input elements of the collective on this rank. [count]';
COMMENT ON COLUMN main.kernel_event.message_out_elements IS 'Output elements of the collective on this rank. [count]';
COMMENT ON COLUMN main.kernel_event.message_in_splits IS 'Input split sizes, one per rank of the group, as JSON text as recorded; NULL if not recorded or if the split is even.';
COMMENT ON COLUMN main.kernel_event.dtype IS 'Element type of the collective as recorded.';
COMMENT ON COLUMN main.kernel_event.group_name IS 'Process group of the collective.';
COMMENT ON COLUMN main.kernel_event.group_size IS 'Number of ranks in the process group. [count]';
COMMENT ON COLUMN main.kernel_event.group_ranks IS 'Ranks of the process group, as JSON text as recorded.';
COMMENT ON COLUMN main.kernel_event.sequence IS 'Sequence number of the collective in its group. [-]';
COMMENT ON COLUMN main.kernel_event.call_id IS 'The framework''s call that this collective kernel belongs to (collective_call.call_id); NULL if none or not recorded. [-]';
COMMENT ON COLUMN main.kernel_event.is_counted IS 'Whether hardware counters were collected during this dispatch; its duration then differs from an ordinary run. NULL if the source does not say.';
COMMENT ON COLUMN main.kernel_event.time_fault IS 'Why the times are impossible: far_from_others, too_long, before_launch, after_launch, or a reason given by the ingester; NULL if they are plausible. Rows with a fault are excluded from spans, sums, gaps and averages.';

CREATE TABLE main.collective_call (
    capture_id INTEGER NOT NULL,
    call_id BIGINT NOT NULL,
    collective VARCHAR,
    message_in_elements BIGINT,
    message_out_elements BIGINT,
    message_in_splits VARCHAR,
    message_out_splits VARCHAR,
    dtype VARCHAR,
    group_name VARCHAR,
    group_size INTEGER,
    group_ranks VARCHAR,
    sequence BIGINT,
    source_rank INTEGER,
    destination_rank INTEGER,
    rank_in_group INTEGER
);
COMMENT ON TABLE main.collective_call IS 'One call of a collective, send or receive by the framework (record_param_comms of PyTorch), with what it recorded about the message. Calls that were batched (batch_isend_irecv) share one kernel, which has no call_id.';
COMMENT ON COLUMN main.collective_call.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN main.collective_call.call_id IS 'The operator that recorded the call (op.op_id); the GPU event (kernel_event.event_id) if only that says it. [-]';
COMMENT ON COLUMN main.collective_call.collective IS 'Name of the collective as recorded (allreduce, all_to_allv, send, recv …).';
COMMENT ON COLUMN main.collective_call.message_in_elements IS 'Input elements on this rank. [count]';
COMMENT ON COLUMN main.collective_call.message_out_elements IS 'Output elements on this rank. [count]';
COMMENT ON COLUMN main.collective_call.message_in_splits IS 'Input split sizes, one per rank of the group, as JSON text as recorded; NULL if not recorded or if the split is even.';
COMMENT ON COLUMN main.collective_call.message_out_splits IS 'Output split sizes, in the same form.';
COMMENT ON COLUMN main.collective_call.dtype IS 'Element type as recorded.';
COMMENT ON COLUMN main.collective_call.group_name IS 'Process group.';
COMMENT ON COLUMN main.collective_call.group_size IS 'Number of ranks in the process group. [count]';
COMMENT ON COLUMN main.collective_call.group_ranks IS 'Ranks of the process group, as JSON text as recorded; PyTorch shortens lists of more than 30.';
COMMENT ON COLUMN main.collective_call.sequence IS 'Sequence number of the call in its group. [-]';
COMMENT ON COLUMN main.collective_call.source_rank IS 'Rank that a receive receives from, as recorded; NULL if not recorded. [-]';
COMMENT ON COLUMN main.collective_call.destination_rank IS 'Rank that a send sends to, as recorded; NULL if not recorded. [-]';
COMMENT ON COLUMN main.collective_call.rank_in_group IS 'For a send or receive, the number of the other rank in the group; for other collectives as recorded. [-]';

CREATE TABLE main.kernel_resource (
    capture_id INTEGER NOT NULL,
    name VARCHAR NOT NULL,
    registers_per_thread INTEGER,
    accum_registers_per_thread INTEGER,
    scalar_registers_per_wave INTEGER,
    scratch_bytes_per_thread INTEGER
);
COMMENT ON TABLE main.kernel_resource IS 'Registers and scratch memory of the kernels of an AMD device: each combination that dispatches of a name had, once. The view launch_params joins them to single kernels.';
COMMENT ON COLUMN main.kernel_resource.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN main.kernel_resource.name IS 'Kernel name as recorded (kernel_event.name).';
COMMENT ON COLUMN main.kernel_resource.registers_per_thread IS 'Architectural vector registers (VGPRs) per work-item, as in kernel_event; NULL if not recorded. [count]';
COMMENT ON COLUMN main.kernel_resource.accum_registers_per_thread IS 'Accumulation vector registers (AccVGPRs) per work-item; NULL if not recorded. [count]';
COMMENT ON COLUMN main.kernel_resource.scalar_registers_per_wave IS 'Scalar registers (SGPRs) per wavefront; NULL if not recorded. [count]';
COMMENT ON COLUMN main.kernel_resource.scratch_bytes_per_thread IS 'Scratch memory per work-item; NULL if not recorded. [bytes]';

CREATE TABLE main.counter (
    capture_id INTEGER NOT NULL,
    event_id BIGINT NOT NULL,
    name VARCHAR NOT NULL,
    value DOUBLE
);
COMMENT ON TABLE main.counter IS 'One hardware counter of one dispatch.';
COMMENT ON COLUMN main.counter.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN main.counter.event_id IS 'Dispatch (kernel_event.event_id). [-]';
COMMENT ON COLUMN main.counter.name IS 'Counter name as recorded.';
COMMENT ON COLUMN main.counter.value IS 'Value, in the counter''s own unit. [-]';

CREATE TABLE main.memory_event (
    capture_id INTEGER NOT NULL,
    memory_event_id BIGINT NOT NULL,
    device_type INTEGER,
    device_id INTEGER,
    address UBIGINT,
    bytes BIGINT,
    total_allocated_bytes BIGINT,
    total_reserved_bytes BIGINT,
    process_id BIGINT,
    thread_id BIGINT,
    start_ns BIGINT NOT NULL,
    frame_id BIGINT
);
COMMENT ON TABLE main.memory_event IS 'One allocation or release by the framework''s allocator, of a trace (left out by --no-memory-events) or a memory snapshot.';
COMMENT ON COLUMN main.memory_event.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN main.memory_event.memory_event_id IS 'Number of the event within the capture. [-]';
COMMENT ON COLUMN main.memory_event.device_type IS 'Device type number of the framework: 0 CPU, 1 CUDA or HIP. [-]';
COMMENT ON COLUMN main.memory_event.device_id IS 'Device number. [-]';
COMMENT ON COLUMN main.memory_event.address IS 'Address of the block. [-]';
COMMENT ON COLUMN main.memory_event.bytes IS 'Bytes allocated; negative for a release; 0 if only the reserved bytes changed. [bytes]';
COMMENT ON COLUMN main.memory_event.total_allocated_bytes IS 'Bytes allocated on the device, after the event. [bytes]';
COMMENT ON COLUMN main.memory_event.total_reserved_bytes IS 'Bytes reserved on the device, after the event. [bytes]';
COMMENT ON COLUMN main.memory_event.process_id IS 'Process. [-]';
COMMENT ON COLUMN main.memory_event.thread_id IS 'Thread. [-]';
COMMENT ON COLUMN main.memory_event.start_ns IS 'Time of the event, on the capture''s clock. [ns]';
COMMENT ON COLUMN main.memory_event.frame_id IS 'Innermost function of the stack recorded with an allocation (memory snapshots); NULL if none was. [-]';
