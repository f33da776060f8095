-- tracedb schema, version 1. Facts only: what the profiler recorded.
-- Times are signed 64-bit integer nanoseconds on the capture's own clock; capture.clock_zero_unix_ns converts
-- them to Unix time. A column that a source does not record is NULL ("not captured"), never 0.
-- Event tables have no primary keys: an index over tens of millions of rows costs more than it saves, and the
-- pipeline numbers the rows itself.

CREATE TABLE main.capture (
    capture_id INTEGER PRIMARY KEY,
    source VARCHAR NOT NULL,
    path VARCHAR,
    part INTEGER NOT NULL DEFAULT 0,
    sha256 VARCHAR,
    size_bytes BIGINT,
    host VARCHAR,
    pid BIGINT,
    rank INTEGER,
    world_size INTEGER,
    tool_version VARCHAR,
    clock_zero_unix_ns BIGINT,
    status VARCHAR NOT NULL DEFAULT 'complete'
        CHECK (status IN ('complete', 'truncated', 'repaired', 'no_gpu_activity')),
    labels MAP(VARCHAR, VARCHAR) NOT NULL DEFAULT MAP {},
    events_read BIGINT,
    events_skipped BIGINT,
    rows_written BIGINT,
    ingester VARCHAR,
    metadata VARCHAR,
    ingested_at TIMESTAMP
);
COMMENT ON TABLE main.capture IS 'One process''s trace by one profiler.';
COMMENT ON COLUMN main.capture.capture_id IS 'Number of the capture in this file. [-]';
COMMENT ON COLUMN main.capture.source IS 'Profiler or format: torch, torch_memory (a memory snapshot), nsys, rocprofv3, rocpd, or the name that a third-party ingester gives.';
COMMENT ON COLUMN main.capture.path IS 'Path of the file, as given to ingest.';
COMMENT ON COLUMN main.capture.part IS 'Number of the process within the file; 0 unless the file holds several. [-]';
COMMENT ON COLUMN main.capture.sha256 IS 'SHA-256 over the bytes of all its files on disk; files that are already loaded are recognised by it.';
COMMENT ON COLUMN main.capture.size_bytes IS 'Size of all its files on disk. [bytes]';
COMMENT ON COLUMN main.capture.host IS 'Host name as recorded; NULL if not captured.';
COMMENT ON COLUMN main.capture.pid IS 'Process id on the recording machine. [-]';
COMMENT ON COLUMN main.capture.rank IS 'Rank: from the trace, else from path or file name, else NULL. [-]';
COMMENT ON COLUMN main.capture.world_size IS 'Number of ranks of the job as recorded; NULL if not captured. [count]';
COMMENT ON COLUMN main.capture.tool_version IS 'Version of the recording tool or trace format, as text.';
COMMENT ON COLUMN main.capture.clock_zero_unix_ns IS 'Unix time at zero of the capture''s clock; NULL if unknown. [ns]';
COMMENT ON COLUMN main.capture.status IS 'complete; truncated (the file ends early); repaired (events were repaired or lost); no_gpu_activity.';
COMMENT ON COLUMN main.capture.labels IS 'Labels from the path, --label and --labels-from: sweep, threads, channels and others.';
COMMENT ON COLUMN main.capture.events_read IS 'Events found in the files: rows_written plus events_skipped. [count]';
COMMENT ON COLUMN main.capture.events_skipped IS 'Events that produced no row; ingest_issue has the reasons. [count]';
COMMENT ON COLUMN main.capture.rows_written IS 'Rows produced from events, over all event tables. [count]';
COMMENT ON COLUMN main.capture.ingester IS 'Ingester and the version of its package.';
COMMENT ON COLUMN main.capture.metadata IS 'Selected trace header fields as JSON text (format, versions, backend, process groups).';
COMMENT ON COLUMN main.capture.ingested_at IS 'When the capture was loaded, UTC.';

CREATE TABLE main.device (
    capture_id INTEGER NOT NULL,
    device_id INTEGER NOT NULL,
    vendor VARCHAR,
    name VARCHAR,
    sm_count INTEGER,
    max_clock_mhz INTEGER,
    memory_bytes BIGINT,
    uuid VARCHAR,
    arch VARCHAR,
    is_used BOOLEAN
);
COMMENT ON TABLE main.device IS 'One GPU of a capture, used or only visible to the process.';
COMMENT ON COLUMN main.device.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN main.device.device_id IS 'Device number, as in the GPU rows of this capture. [-]';
COMMENT ON COLUMN main.device.vendor IS 'NVIDIA, AMD or another vendor; NULL if unknown.';
COMMENT ON COLUMN main.device.name IS 'Product name as recorded; NULL if not captured.';
COMMENT ON COLUMN main.device.sm_count IS 'Number of streaming multiprocessors or compute units. [count]';
COMMENT ON COLUMN main.device.max_clock_mhz IS 'Maximum clock of the compute units; NULL if not captured. [MHz]';
COMMENT ON COLUMN main.device.memory_bytes IS 'Device memory. [bytes]';
COMMENT ON COLUMN main.device.uuid IS 'Device UUID; NULL if not captured.';
COMMENT ON COLUMN main.device.arch IS 'Architecture, such as sm_90 or gfx94x.';
COMMENT ON COLUMN main.device.is_used IS 'Whether any GPU row of the capture is on this device.';

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

CREATE TABLE main.launch (
    capture_id INTEGER NOT NULL,
    launch_id BIGINT NOT NULL,
    correlation_id BIGINT,
    name VARCHAR NOT NULL,
    process_id BIGINT,
    thread_id BIGINT,
    start_ns BIGINT NOT NULL,
    duration_ns BIGINT NOT NULL CHECK (duration_ns >= 0),
    kernel_name VARCHAR,
    graph_node_id BIGINT,
    time_fault VARCHAR
);
COMMENT ON TABLE main.launch IS 'One runtime or driver API call.';
COMMENT ON COLUMN main.launch.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN main.launch.launch_id IS 'Number of the call within the capture. [-]';
COMMENT ON COLUMN main.launch.correlation_id IS 'Profiler''s id that links the call to GPU activities; not unique. [-]';
COMMENT ON COLUMN main.launch.name IS 'Function name, such as cudaLaunchKernel.';
COMMENT ON COLUMN main.launch.process_id IS 'Process that made the call. [-]';
COMMENT ON COLUMN main.launch.thread_id IS 'Thread that made the call. [-]';
COMMENT ON COLUMN main.launch.start_ns IS 'Start of the call, on the capture''s clock. [ns]';
COMMENT ON COLUMN main.launch.duration_ns IS 'Duration of the call. [ns]';
COMMENT ON COLUMN main.launch.kernel_name IS 'Kernel named by the call, if it launched no recorded GPU work (while a graph was captured); NULL where the profiler does not say (CUDA).';
COMMENT ON COLUMN main.launch.graph_node_id IS 'Node of the graph that the call added, where recorded. [-]';
COMMENT ON COLUMN main.launch.time_fault IS 'Why the times are impossible: far_from_others, too_long, before_launch, after_launch, or a reason given by the ingester; NULL if they are plausible. Rows with a fault are excluded from spans, sums, gaps and averages.';

CREATE TABLE main.op (
    capture_id INTEGER NOT NULL,
    op_id BIGINT NOT NULL,
    name VARCHAR NOT NULL,
    process_id BIGINT,
    thread_id BIGINT,
    start_ns BIGINT NOT NULL,
    duration_ns BIGINT NOT NULL CHECK (duration_ns >= 0),
    parent_op_id BIGINT,
    sequence_number BIGINT,
    forward_thread_id BIGINT,
    input_dims VARCHAR,
    input_types VARCHAR,
    input_strides VARCHAR,
    concrete_inputs VARCHAR
);
COMMENT ON TABLE main.op IS 'One framework operator, such as aten::mm.';
COMMENT ON COLUMN main.op.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN main.op.op_id IS 'Number of the operator within the capture. [-]';
COMMENT ON COLUMN main.op.name IS 'Name as recorded.';
COMMENT ON COLUMN main.op.process_id IS 'Process that ran it. [-]';
COMMENT ON COLUMN main.op.thread_id IS 'Thread that ran it. [-]';
COMMENT ON COLUMN main.op.start_ns IS 'Start, on the capture''s clock. [ns]';
COMMENT ON COLUMN main.op.duration_ns IS 'Duration. [ns]';
COMMENT ON COLUMN main.op.parent_op_id IS 'Innermost operator on the same thread that contains this one; NULL at the top level. [-]';
COMMENT ON COLUMN main.op.sequence_number IS 'Autograd sequence number; links forward and backward. [-]';
COMMENT ON COLUMN main.op.forward_thread_id IS 'For a backward operator, the thread of its forward operator. [-]';
COMMENT ON COLUMN main.op.input_dims IS 'Input shapes, as JSON text as recorded; NULL if shapes were not recorded.';
COMMENT ON COLUMN main.op.input_types IS 'Input element types, as JSON text as recorded.';
COMMENT ON COLUMN main.op.input_strides IS 'Input strides, as JSON text as recorded.';
COMMENT ON COLUMN main.op.concrete_inputs IS 'Values of scalar inputs, as JSON text as recorded.';

CREATE TABLE main.annotation (
    capture_id INTEGER NOT NULL,
    annotation_id BIGINT NOT NULL,
    name VARCHAR NOT NULL,
    domain VARCHAR,
    style VARCHAR NOT NULL
        CHECK (style IN ('push_pop', 'start_end', 'mark', 'user', 'gpu_projection', 'python_function')),
    process_id BIGINT,
    thread_id BIGINT,
    device_id INTEGER,
    stream_id BIGINT,
    start_ns BIGINT NOT NULL,
    duration_ns BIGINT CHECK (duration_ns >= 0),
    is_open BOOLEAN NOT NULL DEFAULT false,
    parent_id BIGINT,
    depth INTEGER,
    time_fault VARCHAR
);
COMMENT ON TABLE main.annotation IS 'One NVTX, roctx or record_function range or mark.';
COMMENT ON COLUMN main.annotation.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN main.annotation.annotation_id IS 'Number of the annotation within the capture. [-]';
COMMENT ON COLUMN main.annotation.name IS 'Text of the range or mark.';
COMMENT ON COLUMN main.annotation.domain IS 'NVTX domain; NULL for the default domain and for sources without domains.';
COMMENT ON COLUMN main.annotation.style IS 'push_pop, start_end, mark, user (record_function), gpu_projection (a range that the profiler projected onto a stream), python_function.';
COMMENT ON COLUMN main.annotation.process_id IS 'Process of the annotation. [-]';
COMMENT ON COLUMN main.annotation.thread_id IS 'Thread of the annotation. [-]';
COMMENT ON COLUMN main.annotation.device_id IS 'Device, for gpu_projection only. [-]';
COMMENT ON COLUMN main.annotation.stream_id IS 'Stream, for gpu_projection only. [-]';
COMMENT ON COLUMN main.annotation.start_ns IS 'Start, on the capture''s clock. [ns]';
COMMENT ON COLUMN main.annotation.duration_ns IS 'Duration; NULL for a mark and for a range that was still open. [ns]';
COMMENT ON COLUMN main.annotation.is_open IS 'Whether the range was still open when the capture ended.';
COMMENT ON COLUMN main.annotation.parent_id IS 'Innermost range on the same thread that contains this one; NULL at the top level. [-]';
COMMENT ON COLUMN main.annotation.depth IS 'Number of enclosing ranges on the thread; 0 at the top level. [count]';
COMMENT ON COLUMN main.annotation.time_fault IS 'Why the times are impossible: far_from_others, too_long, before_launch, after_launch, or a reason given by the ingester; NULL if they are plausible. Rows with a fault are excluded from spans, sums, gaps and averages.';

CREATE TABLE main.frame (
    capture_id INTEGER NOT NULL,
    frame_id BIGINT NOT NULL,
    kind VARCHAR NOT NULL CHECK (kind IN ('module', 'function')),
    name VARCHAR NOT NULL,
    file VARCHAR,
    line INTEGER,
    process_id BIGINT,
    thread_id BIGINT,
    start_ns BIGINT NOT NULL,
    duration_ns BIGINT CHECK (duration_ns >= 0),
    parent_id BIGINT,
    module_path VARCHAR
);
COMMENT ON TABLE main.frame IS 'One call of a Python function, or of an nn.Module, as torch.profiler records it with with_stack=True; of a memory snapshot, one function with its callers. Left out with --no-stacks.';
COMMENT ON COLUMN main.frame.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN main.frame.frame_id IS 'Number of the frame within the capture. [-]';
COMMENT ON COLUMN main.frame.kind IS 'module (call of an nn.Module) or function.';
COMMENT ON COLUMN main.frame.name IS 'Name as recorded, such as gpt.py(16): forward, nn.Module: Linear_3, <built-in method add_ of Parameter object at 0x…>.';
COMMENT ON COLUMN main.frame.file IS 'File of the function, as recorded; NULL for modules and built-in functions.';
COMMENT ON COLUMN main.frame.line IS 'First line of the function in it. [-]';
COMMENT ON COLUMN main.frame.process_id IS 'Process that ran it. [-]';
COMMENT ON COLUMN main.frame.thread_id IS 'Thread that ran it. [-]';
COMMENT ON COLUMN main.frame.start_ns IS 'Start, on the capture''s clock. [ns]';
COMMENT ON COLUMN main.frame.duration_ns IS 'Duration; NULL if still open when the capture ended. [ns]';
COMMENT ON COLUMN main.frame.parent_id IS 'Frame that called it, as recorded; NULL at the top. [-]';
COMMENT ON COLUMN main.frame.module_path IS 'Modules around the frame from the outermost, itself included, such as GPT_0.Block_3.Linear_12. The number is PyTorch''s count of the modules of a class in a process; names of attributes are not recorded. NULL outside of modules.';

CREATE TABLE main.annotation_kernel (
    capture_id INTEGER NOT NULL,
    annotation_id BIGINT NOT NULL,
    event_id BIGINT NOT NULL,
    rule VARCHAR NOT NULL CHECK (rule IN ('thread', 'process', 'time'))
);
COMMENT ON TABLE main.annotation_kernel IS 'Derived at load: the innermost range that contains a GPU event, per rule and thread of the range. Follow annotation.parent_id for the outer ranges.';
COMMENT ON COLUMN main.annotation_kernel.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN main.annotation_kernel.annotation_id IS 'The innermost range. [-]';
COMMENT ON COLUMN main.annotation_kernel.event_id IS 'GPU event (kernel_event.event_id). [-]';
COMMENT ON COLUMN main.annotation_kernel.rule IS 'thread: the launch was issued inside the range, on the thread of the range; process: on any thread of the process; time: the GPU event starts inside the range (used only if launches were not recorded).';

CREATE TABLE main.clipped_event (
    capture_id INTEGER NOT NULL,
    event_id BIGINT NOT NULL,
    clipped_duration_ns BIGINT NOT NULL CHECK (clipped_duration_ns >= 0)
);
COMMENT ON TABLE main.clipped_event IS 'Derived at load: GPU events of AMD devices whose recorded end is after the next start on the same queue (or stream, if queues were not recorded). ROCm''s late completion timestamps cause this.';
COMMENT ON COLUMN main.clipped_event.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN main.clipped_event.event_id IS 'GPU event (kernel_event.event_id). [-]';
COMMENT ON COLUMN main.clipped_event.clipped_duration_ns IS 'Duration up to the next start on the queue. [ns]';

CREATE TABLE main.overlapping_kernel (
    capture_id INTEGER NOT NULL,
    event_id BIGINT NOT NULL
);
COMMENT ON TABLE main.overlapping_kernel IS 'Derived at load: kernels that start before an earlier kernel on their stream (AMD: hardware queue) has ended. Kernels with impossible times are excluded.';
COMMENT ON COLUMN main.overlapping_kernel.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN main.overlapping_kernel.event_id IS 'Kernel (kernel_event.event_id). [-]';

CREATE TABLE main.clock_alignment (
    capture_id INTEGER NOT NULL,
    reference_capture_id INTEGER NOT NULL,
    at_ns BIGINT NOT NULL,
    offset_ns BIGINT NOT NULL,
    drift_ppm DOUBLE,
    uses_drift BOOLEAN NOT NULL,
    calls BIGINT NOT NULL,
    span_ns BIGINT NOT NULL,
    residual_median_ns BIGINT,
    residual_p99_ns BIGINT
);
COMMENT ON TABLE main.clock_alignment IS 'Derived at the end of ingest: offset and drift of a capture''s clock against a reference rank, estimated from collectives, which end on all ranks at about the same time, else from messages between ranks.';
COMMENT ON COLUMN main.clock_alignment.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN main.clock_alignment.reference_capture_id IS 'Capture whose clock is the common clock: the lowest rank connected by collectives. [-]';
COMMENT ON COLUMN main.clock_alignment.at_ns IS 'Time on the common clock at which offset_ns holds (Unix time if clock_zero_unix_ns is known). [ns]';
COMMENT ON COLUMN main.clock_alignment.offset_ns IS 'How far this clock is ahead of the common clock at at_ns; subtract it. [ns]';
COMMENT ON COLUMN main.clock_alignment.drift_ppm IS 'Rate at which this clock gains on the common clock; NULL if there are too few calls to estimate it. [ppm]';
COMMENT ON COLUMN main.clock_alignment.uses_drift IS 'Whether the drift is significant; if so, views correct times for it.';
COMMENT ON COLUMN main.clock_alignment.calls IS 'Number of collective calls, or messages, used for the estimate. [count]';
COMMENT ON COLUMN main.clock_alignment.span_ns IS 'Time from the first to the last of them. [ns]';
COMMENT ON COLUMN main.clock_alignment.residual_median_ns IS 'Median difference of their end times on both ranks after correction. [ns]';
COMMENT ON COLUMN main.clock_alignment.residual_p99_ns IS '99th percentile of that difference. [ns]';

CREATE TABLE main.graph_link (
    capture_id INTEGER NOT NULL,
    event_id BIGINT NOT NULL,
    rule VARCHAR NOT NULL CHECK (rule IN ('node_id', 'aligned')),
    origin VARCHAR NOT NULL CHECK (origin IN ('captured launch', 'captured launch in order', 'eager kernel')),
    origin_capture_id INTEGER NOT NULL,
    origin_launch_id BIGINT,
    origin_event_id BIGINT,
    op_id BIGINT
);
COMMENT ON TABLE main.graph_link IS 'Derived at load: where a GPU event that a graph replayed was launched from when the graph was captured, or in a run of the same kernels without a graph.';
COMMENT ON COLUMN main.graph_link.capture_id IS 'Capture of the replay. [-]';
COMMENT ON COLUMN main.graph_link.event_id IS 'Replayed GPU event (kernel_event.event_id). [-]';
COMMENT ON COLUMN main.graph_link.rule IS 'node_id (both are of the same graph node) or aligned (both are at the same place in the order of kernel names, or of launches).';
COMMENT ON COLUMN main.graph_link.origin IS 'captured launch (a call that was recorded into the graph); captured launch in order (such a call that names no kernel; stream capture and replay have the same kinds of work in the same order); eager kernel (a kernel launched without a graph).';
COMMENT ON COLUMN main.graph_link.origin_capture_id IS 'Capture that holds the launch or kernel, and its operator. [-]';
COMMENT ON COLUMN main.graph_link.origin_launch_id IS 'The launch (launch.launch_id); NULL if not recorded. [-]';
COMMENT ON COLUMN main.graph_link.origin_event_id IS 'The eager kernel (kernel_event.event_id); NULL for a captured launch. [-]';
COMMENT ON COLUMN main.graph_link.op_id IS 'Innermost operator around the launch (op.op_id in origin_capture_id); NULL if none. [-]';

CREATE TABLE main.time_bound (
    name VARCHAR NOT NULL,
    limit_ns BIGINT NOT NULL CHECK (limit_ns > 0),
    applied_ns BIGINT NOT NULL
);
COMMENT ON TABLE main.time_bound IS 'Limits beyond which times count as impossible. Change limit_ns with UPDATE; the next ingest into the file checks every capture again.';
COMMENT ON COLUMN main.time_bound.name IS 'before_launch, near_zero, after_launch, far, far_without_calls or capture; docs/ingest.md explains each.';
COMMENT ON COLUMN main.time_bound.limit_ns IS 'The limit. [ns]';
COMMENT ON COLUMN main.time_bound.applied_ns IS 'The limit that time_fault and clock_fault in this file were computed with. [ns]';
INSERT INTO main.time_bound VALUES
    ('before_launch', 1000000, 1000000),
    ('near_zero', 100000000, 100000000),
    ('after_launch', 60000000000, 60000000000),
    ('far', 3600000000000, 3600000000000),
    ('far_without_calls', 86400000000000, 86400000000000),
    ('capture', 2592000000000000, 2592000000000000);

CREATE TABLE main.clock_fault (
    capture_id INTEGER NOT NULL,
    device_id INTEGER,
    offset_ns BIGINT NOT NULL,
    events BIGINT NOT NULL
);
COMMENT ON TABLE main.clock_fault IS 'Derived at load: devices whose clock is not aligned with the clock of the API calls. Times within the device are valid; times between an API call and its kernel are not.';
COMMENT ON COLUMN main.clock_fault.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN main.clock_fault.device_id IS 'Device number within the capture. [-]';
COMMENT ON COLUMN main.clock_fault.offset_ns IS 'Mean of GPU start minus API call start. [ns]';
COMMENT ON COLUMN main.clock_fault.events IS 'Number of GPU events with an API call used for the mean. [count]';

CREATE TABLE main.unrecorded_span (
    capture_id INTEGER NOT NULL,
    device_id INTEGER,
    start_ns BIGINT NOT NULL,
    end_ns BIGINT NOT NULL,
    replays BIGINT NOT NULL
);
COMMENT ON TABLE main.unrecorded_span IS 'Derived at load: parts of gaps between GPU events in which graph replays without recorded kernels may have run. Views count them neither as busy nor as idle.';
COMMENT ON COLUMN main.unrecorded_span.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN main.unrecorded_span.device_id IS 'Device number within the capture. [-]';
COMMENT ON COLUMN main.unrecorded_span.start_ns IS 'Start of the first launch call without kernels, or end of the last event before, whichever is later. [ns]';
COMMENT ON COLUMN main.unrecorded_span.end_ns IS 'Start of the next recorded event that was launched later. [ns]';
COMMENT ON COLUMN main.unrecorded_span.replays IS 'Number of graph launches without kernels, or with only a part of them, before that event. [count]';

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

CREATE TABLE main.synchronization (
    capture_id INTEGER NOT NULL,
    sync_id BIGINT NOT NULL,
    kind VARCHAR NOT NULL CHECK (kind IN ('event', 'stream', 'stream_wait', 'context', 'other')),
    correlation_id BIGINT,
    start_ns BIGINT NOT NULL,
    duration_ns BIGINT NOT NULL CHECK (duration_ns >= 0),
    device_id INTEGER,
    context_id BIGINT,
    stream_id BIGINT,
    waited_stream_id BIGINT,
    cuda_event_id BIGINT,
    record_correlation_id BIGINT
);
COMMENT ON TABLE main.synchronization IS 'One wait for GPU work: of the host (event, stream, context), or of a stream for an event (stream_wait). It is no GPU work.';
COMMENT ON COLUMN main.synchronization.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN main.synchronization.sync_id IS 'Number of the synchronization within the capture. [-]';
COMMENT ON COLUMN main.synchronization.kind IS 'What waits for what: event (host for an event), stream (host for a stream), stream_wait (stream for an event), context (host for all work), other.';
COMMENT ON COLUMN main.synchronization.correlation_id IS 'Correlation id of the API call (launch.correlation_id). [-]';
COMMENT ON COLUMN main.synchronization.start_ns IS 'Start as recorded, on the capture''s clock; of a stream_wait, that of the call. [ns]';
COMMENT ON COLUMN main.synchronization.duration_ns IS 'Duration as recorded; of a stream_wait, that of the call and not of the wait. [ns]';
COMMENT ON COLUMN main.synchronization.device_id IS 'Device number. [-]';
COMMENT ON COLUMN main.synchronization.context_id IS 'CUDA context. [-]';
COMMENT ON COLUMN main.synchronization.stream_id IS 'Stream that waits (stream_wait) or is waited for (stream); NULL for all streams. [-]';
COMMENT ON COLUMN main.synchronization.waited_stream_id IS 'Stream on which the awaited event was recorded; NULL if not captured. [-]';
COMMENT ON COLUMN main.synchronization.cuda_event_id IS 'Awaited CUDA event. [-]';
COMMENT ON COLUMN main.synchronization.record_correlation_id IS 'Correlation id of the call that recorded the awaited event; NULL if not captured. [-]';

CREATE TABLE main.critical_segment (
    capture_id INTEGER NOT NULL,
    step BIGINT,
    ordinal INTEGER NOT NULL,
    kind VARCHAR NOT NULL CHECK (kind IN ('gpu', 'host', 'sync', 'launch', 'gap', 'wait', 'unknown')),
    event_id BIGINT,
    launch_id BIGINT,
    op_id BIGINT,
    annotation_id BIGINT,
    thread_id BIGINT,
    start_ns BIGINT NOT NULL,
    duration_ns BIGINT NOT NULL CHECK (duration_ns > 0),
    slack_ns BIGINT
);
COMMENT ON TABLE main.critical_segment IS 'Derived at load: the critical path of each marked step, else of the whole capture. The segments of a step follow each other without holes; the view critical_path describes them.';
COMMENT ON COLUMN main.critical_segment.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN main.critical_segment.step IS 'Number of the step (ProfilerStep#N); NULL for the whole capture. [-]';
COMMENT ON COLUMN main.critical_segment.ordinal IS 'Place in the path, from 0. [-]';
COMMENT ON COLUMN main.critical_segment.kind IS 'gpu (GPU work), host (work of the host), sync (return of a call that waited for the GPU), launch (from a launch to its work on an empty stream), gap (between two events of a stream), wait (the same after an event of another stream), unknown.';
COMMENT ON COLUMN main.critical_segment.event_id IS 'GPU event (kernel_event.event_id); of a launch, gap or wait, the one that follows. [-]';
COMMENT ON COLUMN main.critical_segment.launch_id IS 'API call that waited (launch.launch_id), of a sync. [-]';
COMMENT ON COLUMN main.critical_segment.op_id IS 'Outermost operator on the thread, of work of the host. [-]';
COMMENT ON COLUMN main.critical_segment.annotation_id IS 'Innermost range on the thread, of work of the host. [-]';
COMMENT ON COLUMN main.critical_segment.thread_id IS 'Thread, of work of the host. [-]';
COMMENT ON COLUMN main.critical_segment.start_ns IS 'Start, on the capture''s clock. [ns]';
COMMENT ON COLUMN main.critical_segment.duration_ns IS 'Duration. [ns]';
COMMENT ON COLUMN main.critical_segment.slack_ns IS 'By how much the next dependency would have been fulfilled earlier; NULL if there is only one. [ns]';

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

CREATE TABLE main.device_condition (
    capture_id INTEGER NOT NULL,
    device_id INTEGER NOT NULL,
    time_ns BIGINT NOT NULL,
    sm_clock_mhz DOUBLE,
    memory_clock_mhz DOUBLE,
    power_w DOUBLE,
    temperature_c DOUBLE,
    throttle VARCHAR
);
COMMENT ON TABLE main.device_condition IS 'Clocks, power and temperature of a device at a moment: read by tracedb sample and tracedb watch through NVML or amdsmi, or recorded by nsys (GPU metrics).';
COMMENT ON COLUMN main.device_condition.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN main.device_condition.device_id IS 'Device number within the capture. [-]';
COMMENT ON COLUMN main.device_condition.time_ns IS 'When it was read, on the capture''s clock. [ns]';
COMMENT ON COLUMN main.device_condition.sm_clock_mhz IS 'Clock of the multiprocessors or compute units; NULL if not read. [MHz]';
COMMENT ON COLUMN main.device_condition.memory_clock_mhz IS 'Clock of the device memory; NULL if not read. [MHz]';
COMMENT ON COLUMN main.device_condition.power_w IS 'Power drawn by the device: of that moment where the driver tells it, else its average over a short time; NULL if not read. [W]';
COMMENT ON COLUMN main.device_condition.temperature_c IS 'Temperature of the GPU; NULL if not read. [°C]';
COMMENT ON COLUMN main.device_condition.throttle IS 'Why the clock is below its maximum, as the driver names it, several joined by commas, such as sw_power_cap; none if there is no reason; NULL if not read.';

CREATE TABLE main.sample_status (
    capture_id INTEGER,
    operator VARCHAR NOT NULL,
    dtype VARCHAR NOT NULL,
    device VARCHAR NOT NULL,
    shape MAP(VARCHAR, BIGINT) NOT NULL,
    status VARCHAR NOT NULL CHECK (status IN ('sampled', 'invalid', 'out_of_memory', 'error')),
    detail VARCHAR,
    sampled_at TIMESTAMP NOT NULL,
    regime VARCHAR
);
COMMENT ON TABLE main.sample_status IS 'Outcome of one shape in a tracedb sample sweep.';
COMMENT ON COLUMN main.sample_status.capture_id IS 'Capture with its iterations; NULL if it was not sampled. [-]';
COMMENT ON COLUMN main.sample_status.operator IS 'Operator name, such as linear1.';
COMMENT ON COLUMN main.sample_status.dtype IS 'Element type: fp16, bf16 or fp32.';
COMMENT ON COLUMN main.sample_status.device IS 'Product name of the GPU, or cpu.';
COMMENT ON COLUMN main.sample_status.shape IS 'Map from shape parameter to value. [-]';
COMMENT ON COLUMN main.sample_status.status IS 'sampled; invalid (the operator does not allow this shape); out_of_memory; error.';
COMMENT ON COLUMN main.sample_status.detail IS 'Why it was not sampled; NULL if it was.';
COMMENT ON COLUMN main.sample_status.sampled_at IS 'When the shape ran, UTC.';
COMMENT ON COLUMN main.sample_status.regime IS 'steady (at the power and clock of sustained work), rested (the device rests between iterations) or beside_allreduce (steady, while an all-reduce runs); NULL if unknown.';

CREATE TABLE main.operator_sample (
    capture_id INTEGER NOT NULL,
    sample_id BIGINT NOT NULL,
    gpu VARCHAR,
    operator VARCHAR NOT NULL,
    pass VARCHAR NOT NULL,
    dtype VARCHAR,
    shape MAP(VARCHAR, BIGINT) NOT NULL,
    statistic VARCHAR NOT NULL,
    time_ns BIGINT NOT NULL
);
COMMENT ON TABLE main.operator_sample IS 'One operator time measured by another tool, without its events. Samples recorded as ranges are in annotation.';
COMMENT ON COLUMN main.operator_sample.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN main.operator_sample.sample_id IS 'Number of the sample within the capture. [-]';
COMMENT ON COLUMN main.operator_sample.gpu IS 'GPU name as recorded.';
COMMENT ON COLUMN main.operator_sample.operator IS 'Operator name, such as linear1 or allreduce.';
COMMENT ON COLUMN main.operator_sample.pass IS 'fwd, bwd, step (optimizer) or comm (collective).';
COMMENT ON COLUMN main.operator_sample.dtype IS 'Element type: fp16, bf16, fp32, fp64.';
COMMENT ON COLUMN main.operator_sample.shape IS 'Map from shape parameter to value. [-]';
COMMENT ON COLUMN main.operator_sample.statistic IS 'Which statistic time_ns is, such as span_trimmed_mean.';
COMMENT ON COLUMN main.operator_sample.time_ns IS 'The time, rounded to whole nanoseconds. [ns]';

CREATE TABLE main.operator_burst (
    capture_id INTEGER NOT NULL,
    operator VARCHAR NOT NULL,
    pass VARCHAR NOT NULL,
    dtype VARCHAR NOT NULL,
    shape MAP(VARCHAR, BIGINT) NOT NULL,
    calls BIGINT,
    duration_ns BIGINT,
    spin_ns BIGINT,
    sm_clock_mhz DOUBLE,
    memory_clock_mhz DOUBLE,
    power_w DOUBLE,
    spin_power_w DOUBLE,
    power_limit_w DOUBLE,
    sm_clock_limit_mhz DOUBLE,
    host_ns BIGINT,
    is_synchronous BOOLEAN
);
COMMENT ON TABLE main.operator_burst IS 'An operator that tracedb sample repeated alone and without the profiler: its power, or the time in which the host launches it.';
COMMENT ON COLUMN main.operator_burst.capture_id IS 'Capture with the samples of this shape. [-]';
COMMENT ON COLUMN main.operator_burst.operator IS 'Operator name, such as linear1.';
COMMENT ON COLUMN main.operator_burst.pass IS 'fwd, bwd or step (optimizer); of a whole model zero_grad, forward, backward or optimizer.';
COMMENT ON COLUMN main.operator_burst.dtype IS 'Element type: fp16, bf16 or fp32.';
COMMENT ON COLUMN main.operator_burst.shape IS 'Map from shape parameter to value. [-]';
COMMENT ON COLUMN main.operator_burst.calls IS 'Calls while power and clock were read; NULL if only the host was timed. [count]';
COMMENT ON COLUMN main.operator_burst.duration_ns IS 'Time of these calls on the device, with what it spun. [ns]';
COMMENT ON COLUMN main.operator_burst.spin_ns IS 'How long of this one multiprocessor only spun, to draw less power; NULL if it did not. [ns]';
COMMENT ON COLUMN main.operator_burst.sm_clock_mhz IS 'Median SM clock meanwhile; NULL if not read. [MHz]';
COMMENT ON COLUMN main.operator_burst.memory_clock_mhz IS 'Median clock of the device memory meanwhile; NULL if not read. [MHz]';
COMMENT ON COLUMN main.operator_burst.power_w IS 'Mean power of the device meanwhile; NULL if not read. [W]';
COMMENT ON COLUMN main.operator_burst.spin_power_w IS 'Power of the device when it does nothing but spin on one multiprocessor; NULL if not read. [W]';
COMMENT ON COLUMN main.operator_burst.power_limit_w IS 'Power limit enforced on the device; NULL if not read. [W]';
COMMENT ON COLUMN main.operator_burst.sm_clock_limit_mhz IS 'Highest SM clock of the device; NULL if not read. [MHz]';
COMMENT ON COLUMN main.operator_burst.host_ns IS 'Median time in which the host launches one of several calls in a row; of a whole model its time in the pass, Python included, median of a round of steps; NULL if only the power was read. [ns]';
COMMENT ON COLUMN main.operator_burst.is_synchronous IS 'Whether the host waits for the device within a call, so that host_ns includes that; NULL if the host was not timed.';

CREATE TABLE main.measure (
    capture_id INTEGER NOT NULL,
    measure_id BIGINT NOT NULL,
    name VARCHAR NOT NULL,
    statistic VARCHAR NOT NULL CHECK (statistic IN ('single', 'mean', 'median', 'min', 'max', 'stddev')),
    time_ns BIGINT NOT NULL CHECK (time_ns >= 0),
    n BIGINT,
    settings MAP(VARCHAR, VARCHAR) NOT NULL
);
COMMENT ON TABLE main.measure IS 'One time that a program took of itself, outside of any trace. The view range_measured puts it beside the ranges of that name.';
COMMENT ON COLUMN main.measure.capture_id IS 'Capture: the file of times. [-]';
COMMENT ON COLUMN main.measure.measure_id IS 'Number of the time within the capture. [-]';
COMMENT ON COLUMN main.measure.name IS 'What was timed: the name of the range around the same work in a trace.';
COMMENT ON COLUMN main.measure.statistic IS 'single (one repetition), mean, median, min, max or stddev over repetitions.';
COMMENT ON COLUMN main.measure.time_ns IS 'The time, rounded to whole ns. [ns]';
COMMENT ON COLUMN main.measure.n IS 'Repetitions behind it; NULL if not recorded. [count]';
COMMENT ON COLUMN main.measure.settings IS 'Other columns of the file, such as model and context length.';
CREATE TABLE main.replay_run (
    replay_id INTEGER NOT NULL,
    capture_id INTEGER NOT NULL,
    mode VARCHAR NOT NULL CHECK (mode IN ('isolated', 'full', 'compare')),
    activity VARCHAR NOT NULL CHECK (activity IN ('gpu', 'cpu')),
    step BIGINT,
    range_glob VARCHAR,
    passes BIGINT NOT NULL,
    device VARCHAR,
    torch_version VARCHAR,
    cache VARCHAR CHECK (cache IN ('warm', 'cold')),
    clock VARCHAR CHECK (clock IN ('sustained', 'rested')),
    sequence_calls BIGINT,
    sequence_share_percent DOUBLE,
    sequence_eager_ns DOUBLE,
    sequence_graph_ns DOUBLE,
    sequence_joules DOUBLE,
    sequence_detail VARCHAR,
    idle_watts DOUBLE,
    energy_interval_ns BIGINT,
    measured_ns DOUBLE,
    measured_joules DOUBLE,
    measured_source VARCHAR,
    replayed_at TIMESTAMP NOT NULL
);
COMMENT ON TABLE main.replay_run IS 'One run of tracedb replay: what was replayed, where and how.';
COMMENT ON COLUMN main.replay_run.replay_id IS 'Number of the run in this file. [-]';
COMMENT ON COLUMN main.replay_run.capture_id IS 'Capture whose operators were replayed. [-]';
COMMENT ON COLUMN main.replay_run.mode IS 'isolated (each unique operator alone), full (the operators of a pass in their recorded order), compare (both).';
COMMENT ON COLUMN main.replay_run.activity IS 'What was recorded of an operator: gpu (its kernels and copies) or cpu (its own time, where the capture has no GPU activity).';
COMMENT ON COLUMN main.replay_run.step IS 'Step chosen with --step; NULL for all. [-]';
COMMENT ON COLUMN main.replay_run.range_glob IS 'Pattern of ranges given with --range; NULL if none.';
COMMENT ON COLUMN main.replay_run.passes IS 'Passes (steps, ranges, or the whole capture) that the calls come from. [count]';
COMMENT ON COLUMN main.replay_run.device IS 'Product name of the device that replayed, or cpu.';
COMMENT ON COLUMN main.replay_run.torch_version IS 'Version of PyTorch that replayed.';
COMMENT ON COLUMN main.replay_run.cache IS 'warm (inputs may lie in the cache from the call before) or cold (the cache is filled with other data before each call).';
COMMENT ON COLUMN main.replay_run.clock IS 'sustained (operators take turns without a pause, as in a step) or rested (a pause before each sample).';
COMMENT ON COLUMN main.replay_run.sequence_calls IS 'Calls of the pass that was replayed as a whole; NULL if none was. [count]';
COMMENT ON COLUMN main.replay_run.sequence_share_percent IS 'Their share of the recorded time of the pass. [percent]';
COMMENT ON COLUMN main.replay_run.sequence_eager_ns IS 'Median wall time of the pass replayed call by call. [ns]';
COMMENT ON COLUMN main.replay_run.sequence_graph_ns IS 'Median time of the pass replayed as one CUDA graph; NULL where it cannot be captured. [ns]';
COMMENT ON COLUMN main.replay_run.sequence_joules IS 'Energy of the pass replayed call by call, idle time included; NULL if not measured. [J]';
COMMENT ON COLUMN main.replay_run.sequence_detail IS 'Why the pass was not replayed as a whole; NULL if it was.';
COMMENT ON COLUMN main.replay_run.idle_watts IS 'Power of the idle device before the replay; NULL if not measured. [W]';
COMMENT ON COLUMN main.replay_run.energy_interval_ns IS 'Longest time between two updates of the energy counter that was seen: no energy is resolved more finely. [ns]';
COMMENT ON COLUMN main.replay_run.measured_ns IS 'Wall time of a pass measured without a profiler (--measured); NULL if not given. [ns]';
COMMENT ON COLUMN main.replay_run.measured_joules IS 'Energy of a pass measured with it; NULL if not given. [J]';
COMMENT ON COLUMN main.replay_run.measured_source IS 'File or value given with --measured.';
COMMENT ON COLUMN main.replay_run.replayed_at IS 'When it ran, UTC.';

CREATE TABLE main.replay_pass (
    replay_id INTEGER NOT NULL,
    capture_id INTEGER NOT NULL,
    pass INTEGER NOT NULL,
    name VARCHAR NOT NULL,
    step BIGINT,
    events BIGINT NOT NULL,
    kernel_sum_ns BIGINT NOT NULL,
    union_ns BIGINT NOT NULL,
    span_ns BIGINT NOT NULL,
    idle_ns BIGINT NOT NULL,
    launch_gap_ns BIGINT,
    wall_ns BIGINT NOT NULL
);
COMMENT ON TABLE main.replay_pass IS 'A recorded pass (step, range or whole capture) whose operators tracedb replay ran.';
COMMENT ON COLUMN main.replay_pass.replay_id IS 'Run of tracedb replay. [-]';
COMMENT ON COLUMN main.replay_pass.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN main.replay_pass.pass IS 'Number of the pass, from 1 in the order of time. [-]';
COMMENT ON COLUMN main.replay_pass.name IS 'Name of the step or range; capture for the whole capture.';
COMMENT ON COLUMN main.replay_pass.step IS 'Step number; NULL for other passes. [-]';
COMMENT ON COLUMN main.replay_pass.events IS 'GPU events of the pass; of a capture of the CPU only, operators. [count]';
COMMENT ON COLUMN main.replay_pass.kernel_sum_ns IS 'Sum of their durations. [ns]';
COMMENT ON COLUMN main.replay_pass.union_ns IS 'Time during which at least one of them runs. [ns]';
COMMENT ON COLUMN main.replay_pass.span_ns IS 'From the first start to the last end. [ns]';
COMMENT ON COLUMN main.replay_pass.idle_ns IS 'Span less union. [ns]';
COMMENT ON COLUMN main.replay_pass.launch_gap_ns IS 'Part of the idle time during which nothing was launched yet: the GPU waited for the CPU. NULL where launches were not recorded. [ns]';
COMMENT ON COLUMN main.replay_pass.wall_ns IS 'From the start of the range to its end or to the last end on the GPU, if that is later; of a whole capture the span. [ns]';

CREATE TABLE main.replay (
    replay_id INTEGER NOT NULL,
    signature_id INTEGER NOT NULL,
    capture_id INTEGER NOT NULL,
    name VARCHAR NOT NULL,
    input_dims VARCHAR,
    input_types VARCHAR,
    input_strides VARCHAR,
    concrete_inputs VARCHAR,
    copy_kind VARCHAR,
    bytes BIGINT,
    class VARCHAR,
    tier INTEGER,
    kernels VARCHAR,
    calls BIGINT NOT NULL,
    calls_per_pass DOUBLE NOT NULL,
    recorded_total_ns BIGINT NOT NULL,
    share_percent DOUBLE NOT NULL,
    recorded_median_ns DOUBLE NOT NULL,
    recorded_mad_ns DOUBLE NOT NULL,
    replayed_median_ns DOUBLE,
    replayed_mad_ns DOUBLE,
    replayed_kernel_median_ns DOUBLE,
    samples BIGINT,
    timing VARCHAR CHECK (timing IN ('graph', 'events', 'wall', 'profiler')),
    ratio DOUBLE,
    same_kernels BOOLEAN,
    replayed_kernels VARCHAR,
    joules DOUBLE,
    joules_seconds DOUBLE,
    status VARCHAR NOT NULL CHECK (status IN (
        'replayed', 'collective', 'custom', 'graph_only', 'no_operator', 'no_shapes', 'incomplete', 'too_large',
        'out_of_memory', 'failed', 'left_out'
    )),
    detail VARCHAR
);
COMMENT ON TABLE main.replay IS 'A unique operator of a capture, its recorded time, and its time when it was run again alone.';
COMMENT ON COLUMN main.replay.replay_id IS 'Run of tracedb replay. [-]';
COMMENT ON COLUMN main.replay.signature_id IS 'Number of the operator in the run, from 1 by recorded time. [-]';
COMMENT ON COLUMN main.replay.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN main.replay.name IS 'Operator that launched the work: the outermost aten operator that launches anything itself, with all that its inner operators launch. Where no operator is recorded, the kernel or copy.';
COMMENT ON COLUMN main.replay.input_dims IS 'Shapes of its inputs, JSON text as recorded.';
COMMENT ON COLUMN main.replay.input_types IS 'Element types of its inputs, JSON text as recorded.';
COMMENT ON COLUMN main.replay.input_strides IS 'Strides of its inputs, JSON text as recorded.';
COMMENT ON COLUMN main.replay.concrete_inputs IS 'Values of its scalar inputs, JSON text as recorded.';
COMMENT ON COLUMN main.replay.copy_kind IS 'Direction of its copies (HtoD, DtoH, DtoD …); NULL if it copies nothing.';
COMMENT ON COLUMN main.replay.bytes IS 'Bytes copied or set by one call where no operator is recorded. [bytes]';
COMMENT ON COLUMN main.replay.class IS 'Class of its longest kernel.';
COMMENT ON COLUMN main.replay.tier IS '1 memory operation (class copy), 2 matmul, 3 the rest. [-]';
COMMENT ON COLUMN main.replay.kernels IS 'What one call launched most often: JSON list of [name, grid, block].';
COMMENT ON COLUMN main.replay.calls IS 'Number of calls in the chosen passes. [count]';
COMMENT ON COLUMN main.replay.calls_per_pass IS 'Calls per pass. [count]';
COMMENT ON COLUMN main.replay.recorded_total_ns IS 'Sum of the durations of its kernels and copies; without GPU activity, of the operator. [ns]';
COMMENT ON COLUMN main.replay.share_percent IS 'Its share of the recorded time of the chosen passes. [percent]';
COMMENT ON COLUMN main.replay.recorded_median_ns IS 'Median over calls of the recorded time of a call. [ns]';
COMMENT ON COLUMN main.replay.recorded_mad_ns IS 'Median absolute deviation of it. [ns]';
COMMENT ON COLUMN main.replay.replayed_median_ns IS 'Median over samples of the time of a call; NULL if it was not replayed. [ns]';
COMMENT ON COLUMN main.replay.replayed_mad_ns IS 'Median absolute deviation of it. [ns]';
COMMENT ON COLUMN main.replay.replayed_kernel_median_ns IS 'Median over calls of the sum of kernel durations, as the profiler measures them in a recording; NULL without GPU activity. [ns]';
COMMENT ON COLUMN main.replay.samples IS 'Samples taken, each of many calls where these are short. [count]';
COMMENT ON COLUMN main.replay.timing IS 'graph (calls in a CUDA graph, between CUDA events), events (CUDA events around each call), profiler (sum of kernel durations: the call waits for the GPU and cannot be captured), wall (clock of the CPU).';
COMMENT ON COLUMN main.replay.ratio IS 'Replayed over recorded median. [ratio]';
COMMENT ON COLUMN main.replay.same_kernels IS 'Whether a call launched the kernels that were recorded, by name, grid and block; NULL without GPU activity.';
COMMENT ON COLUMN main.replay.replayed_kernels IS 'What one call launched: JSON list of [name, grid, block].';
COMMENT ON COLUMN main.replay.joules IS 'Energy of a call, from the total of NVML over a loop of calls; NULL if not measured. [J]';
COMMENT ON COLUMN main.replay.joules_seconds IS 'Length of that loop. [s]';
COMMENT ON COLUMN main.replay.status IS 'replayed, or why not: collective, custom (no such operator in PyTorch), graph_only (known from a graph replay only), no_operator, no_shapes, incomplete (an input is not recorded), too_large, out_of_memory, failed, left_out (by the options).';
COMMENT ON COLUMN main.replay.detail IS 'Why it was not replayed, or what had to be assumed; else NULL.';

CREATE TABLE main.ingest_issue (
    capture_id INTEGER,
    code VARCHAR NOT NULL,
    severity VARCHAR NOT NULL DEFAULT 'note' CHECK (severity IN ('note', 'warning')),
    count BIGINT NOT NULL DEFAULT 1,
    skipped BIGINT NOT NULL DEFAULT 0,
    detail VARCHAR
);
COMMENT ON TABLE main.ingest_issue IS 'What ingest skipped, repaired, guessed or ignored.';
COMMENT ON COLUMN main.ingest_issue.capture_id IS 'Capture; NULL for a file that gave no capture. [-]';
COMMENT ON COLUMN main.ingest_issue.code IS 'Code, such as event_repaired or flow_events; docs/issue-codes.md lists all of them.';
COMMENT ON COLUMN main.ingest_issue.severity IS 'note: not stored by design; warning: the file is faulty, and --strict fails.';
COMMENT ON COLUMN main.ingest_issue.count IS 'Number of events concerned. [count]';
COMMENT ON COLUMN main.ingest_issue.skipped IS 'Number of them that produced no row; the sum over codes is capture.events_skipped. [count]';
COMMENT ON COLUMN main.ingest_issue.detail IS 'What was found, where, and how it was handled.';

CREATE TABLE main.kernel_rule (
    priority INTEGER NOT NULL,
    pattern VARCHAR NOT NULL,
    class VARCHAR NOT NULL
);
COMMENT ON TABLE main.kernel_rule IS 'Your own kernel classification rules, applied before the built-in ones; empty at first.';
COMMENT ON COLUMN main.kernel_rule.priority IS 'The matching rule with the lowest number wins. [-]';
COMMENT ON COLUMN main.kernel_rule.pattern IS 'Regular expression (RE2) that is searched for in the kernel name.';
COMMENT ON COLUMN main.kernel_rule.class IS 'Class that matching kernels get.';

CREATE TABLE main.why_rule (
    priority INTEGER NOT NULL,
    subject VARCHAR NOT NULL,
    pattern VARCHAR NOT NULL,
    reason VARCHAR NOT NULL
);
COMMENT ON TABLE main.why_rule IS 'Your own rules by which `tracedb why` finds the reason for a piece of step time, applied before the built-in ones (v1._why_rule); empty at first.';
COMMENT ON COLUMN main.why_rule.priority IS 'The matching rule with the lowest number wins. [-]';
COMMENT ON COLUMN main.why_rule.subject IS 'What the pattern is searched in: kernel (class, space, name), collective, copy, call or host (operator or range).';
COMMENT ON COLUMN main.why_rule.pattern IS 'Regular expression (RE2).';
COMMENT ON COLUMN main.why_rule.reason IS 'A reason of v1.why, or words of your own; computation for none.';

CREATE TABLE main.frame_rule (
    priority INTEGER NOT NULL,
    pattern VARCHAR NOT NULL,
    is_own BOOLEAN NOT NULL
);
COMMENT ON TABLE main.frame_rule IS 'The user''s own rules for whose code a Python frame is, tried before the shipped ones; empty at first.';
COMMENT ON COLUMN main.frame_rule.priority IS 'Lowest number wins. [-]';
COMMENT ON COLUMN main.frame_rule.pattern IS 'Regular expression (RE2) searched in frame.name.';
COMMENT ON COLUMN main.frame_rule.is_own IS 'Whether such a frame is the user''s own code.';

CREATE TABLE main.device_peak (
    priority INTEGER NOT NULL,
    device_name VARCHAR NOT NULL,
    source VARCHAR NOT NULL CHECK (source IN ('data sheet', 'measured')),
    memory_gbps DOUBLE,
    fp64_tflops DOUBLE,
    fp32_tflops DOUBLE,
    tf32_tflops DOUBLE,
    fp16_tflops DOUBLE,
    bf16_tflops DOUBLE,
    fp8_tflops DOUBLE,
    int8_tflops DOUBLE
);
COMMENT ON TABLE main.device_peak IS 'Peak rates of devices; may be edited. Initially from the vendors'' data sheets (dense matrix units with the default accumulator, for the module with the highest power limit); `tracedb sample --peaks` adds measured ones.';
COMMENT ON COLUMN main.device_peak.priority IS 'For each source, the matching row with the lowest number is used. [-]';
COMMENT ON COLUMN main.device_peak.device_name IS 'Regular expression (RE2) that is searched for in device.name.';
COMMENT ON COLUMN main.device_peak.source IS 'data sheet (the vendor''s figure, or your own), or measured.';
COMMENT ON COLUMN main.device_peak.memory_gbps IS 'Memory bandwidth, reads and writes together. [GB/s]';
COMMENT ON COLUMN main.device_peak.fp64_tflops IS 'Peak rate of fp64 matrix products. [TFLOP/s]';
COMMENT ON COLUMN main.device_peak.fp32_tflops IS 'Peak rate of fp32 matrix products in full precision. [TFLOP/s]';
COMMENT ON COLUMN main.device_peak.tf32_tflops IS 'Peak rate of fp32 matrix products in TF32 (AMD: XF32). [TFLOP/s]';
COMMENT ON COLUMN main.device_peak.fp16_tflops IS 'Peak rate of fp16 matrix products. [TFLOP/s]';
COMMENT ON COLUMN main.device_peak.bf16_tflops IS 'Peak rate of bf16 matrix products. [TFLOP/s]';
COMMENT ON COLUMN main.device_peak.fp8_tflops IS 'Peak rate of fp8 matrix products. [TFLOP/s]';
COMMENT ON COLUMN main.device_peak.int8_tflops IS 'Peak rate of int8 matrix products, in 10^12 operations per second. [TFLOP/s]';
INSERT INTO main.device_peak VALUES
    (100, 'B200', 'data sheet', 8000, 37, 75, 1100, 2250, 2250, 4500, 4500),
    (110, 'GH200', 'data sheet', 4000, 67, 67, 494.7, 989.4, 989.4, 1978.9, 1978.9),
    (120, 'H200 NVL', 'data sheet', 4800, 60, 60, 417.5, 835.5, 835.5, 1670.5, 1670.5),
    (121, 'H200', 'data sheet', 4800, 67, 67, 494.7, 989.4, 989.4, 1978.9, 1978.9),
    (130, 'H100 PCIe', 'data sheet', 2000, 51.2, 51.2, 378, 756, 756, 1513, 1513),
    (131, 'H100 NVL', 'data sheet', 3900, 60, 60, 417.5, 835.5, 835.5, 1670.5, 1670.5),
    (132, 'H100', 'data sheet', 3350, 67, 67, 494.7, 989.4, 989.4, 1978.9, 1978.9),
    (133, 'H800', 'data sheet', 3350, 1, 67, 494.7, 989.4, 989.4, 1978.9, 1978.9),
    (134, 'H20', 'data sheet', 4000, 1, 44, 74, 148, 148, 296, 296),
    (140, 'A100.*PCI.*40GB', 'data sheet', 1555, 19.5, 19.5, 156, 312, 312, NULL, 624),
    (141, 'A100.*PCI.*80GB', 'data sheet', 1935, 19.5, 19.5, 156, 312, 312, NULL, 624),
    (142, 'A100.*80GB', 'data sheet', 2039, 19.5, 19.5, 156, 312, 312, NULL, 624),
    (143, 'A100', 'data sheet', 1555, 19.5, 19.5, 156, 312, 312, NULL, 624),
    (144, 'A800', 'data sheet', 2039, 19.5, 19.5, 156, 312, 312, NULL, 624),
    (150, 'L40S', 'data sheet', 864, NULL, 91.6, 183, 362.05, 362.05, 733, 733),
    (151, 'L4\b', 'data sheet', 300, NULL, 30.3, 60, 121, 121, 242.5, 242.5),
    (152, 'A10\b', 'data sheet', 600, NULL, 31.2, 62.5, 125, 125, NULL, 250),
    (153, 'A40\b', 'data sheet', 696, NULL, 37.4, 74.8, 149.7, 149.7, NULL, 299.3),
    (160, 'V100.*PCIE', 'data sheet', 900, 7, 14, NULL, 112, NULL, NULL, NULL),
    (161, 'V100', 'data sheet', 900, 7.8, 15.7, NULL, 125, NULL, NULL, NULL),
    (162, 'T4\b', 'data sheet', 320, NULL, 8.1, NULL, 65, NULL, NULL, 130),
    (170, 'RTX 4090', 'data sheet', 1008, NULL, 82.6, 82.6, 165.2, 165.2, 330.3, 660.6),
    (171, 'RTX 3090\b', 'data sheet', 936, NULL, 35.6, 35.6, 71, 71, NULL, 284),
    (172, 'RTX 3060$', 'data sheet', 360, NULL, 12.7, 12.7, 25.5, 25.5, NULL, 102),
    (200, 'MI355X', 'data sheet', 8000, 78.6, 157.3, NULL, 2516.6, 2516.6, 5033.2, 5033.2),
    (201, 'MI350X', 'data sheet', 8000, 72.1, 144.2, NULL, 2306.9, 2306.9, 4613.7, 4613.7),
    (202, 'MI325X', 'data sheet', 6000, 163.4, 163.4, 653.7, 1307.4, 1307.4, 2614.9, 2614.9),
    (203, 'MI300X', 'data sheet', 5300, 163.4, 163.4, 653.7, 1307.4, 1307.4, 2614.9, 2614.9),
    (204, 'MI300A', 'data sheet', 5300, 122.6, 122.6, 490.3, 980.6, 980.6, 1961.2, 1961.2),
    (205, 'MI250X', 'data sheet', 1638.4, 47.9, 47.9, NULL, 191.5, 191.5, NULL, 191.5),
    (206, 'MI250', 'data sheet', 1638.4, 45.3, 45.3, NULL, 181, 181, NULL, 181),
    (207, 'MI210', 'data sheet', 1638.4, 45.3, 45.3, NULL, 181, 181, NULL, 181),
    (208, 'MI100', 'data sheet', 1228.8, 11.5, 46.1, NULL, 184.6, 92.3, NULL, 184.6);

CREATE TABLE main.expected_time (
    capture_id INTEGER NOT NULL,
    gpu VARCHAR,
    name VARCHAR NOT NULL,
    input_dims VARCHAR NOT NULL,
    input_types VARCHAR,
    math_dtype VARCHAR,
    pass VARCHAR NOT NULL,
    predicted_ns DOUBLE NOT NULL CHECK (predicted_ns > 0),
    low_ns DOUBLE NOT NULL,
    high_ns DOUBLE NOT NULL,
    basis VARCHAR NOT NULL CHECK (basis IN ('recorded', 'model', 'others')),
    samples BIGINT,
    models_sha256 VARCHAR,
    predicted_at TIMESTAMP
);
COMMENT ON TABLE main.expected_time IS 'Time of one call of an operator of a capture as predicted by models of its GPU; filled by tracedb expected, read by the view expected.';
COMMENT ON COLUMN main.expected_time.capture_id IS 'Capture that the prediction is for. [-]';
COMMENT ON COLUMN main.expected_time.gpu IS 'Name of its GPU.';
COMMENT ON COLUMN main.expected_time.name IS 'Operator (op.name).';
COMMENT ON COLUMN main.expected_time.input_dims IS 'Input shapes, as in op.';
COMMENT ON COLUMN main.expected_time.input_types IS 'Input element types, as in op; NULL if not recorded.';
COMMENT ON COLUMN main.expected_time.math_dtype IS 'Element type of the arithmetic, as in operator_calls; NULL if unknown.';
COMMENT ON COLUMN main.expected_time.pass IS 'fwd, bwd or step, as in operator_calls.';
COMMENT ON COLUMN main.expected_time.predicted_ns IS 'Predicted time of one call beside which no collective runs. [ns]';
COMMENT ON COLUMN main.expected_time.low_ns IS 'Lower end of the interval that should hold nine of ten measurements. [ns]';
COMMENT ON COLUMN main.expected_time.high_ns IS 'Upper end of that interval. [ns]';
COMMENT ON COLUMN main.expected_time.basis IS 'recorded (time at the same shapes in other traces), model (of the operator, at this shape) or others (the other captures of this file).';
COMMENT ON COLUMN main.expected_time.samples IS 'Calls, or shapes of the model, that it is based on. [count]';
COMMENT ON COLUMN main.expected_time.models_sha256 IS 'SHA-256 of models.json; NULL for basis others.';
COMMENT ON COLUMN main.expected_time.predicted_at IS 'When it was predicted, UTC.';

CREATE TABLE main.whatif (
    capture_id INTEGER NOT NULL,
    span VARCHAR NOT NULL,
    scenario VARCHAR NOT NULL,
    changes INTEGER NOT NULL,
    ranks INTEGER NOT NULL,
    rank INTEGER,
    steps INTEGER NOT NULL,
    measured_ns BIGINT NOT NULL,
    predicted_ns BIGINT NOT NULL,
    gain_percent DOUBLE NOT NULL,
    bound_by VARCHAR NOT NULL,
    limit_ns BIGINT NOT NULL,
    limit_percent DOUBLE NOT NULL,
    predicted_at TIMESTAMP NOT NULL
);
COMMENT ON TABLE main.whatif IS 'Time of the recorded steps under changes, as tracedb whatif --store found it: a row for each recording, span and scenario.';
COMMENT ON COLUMN main.whatif.capture_id IS 'Capture; of several ranks that are timed together the first. [-]';
COMMENT ON COLUMN main.whatif.span IS 'What is timed: steps, step N, window FROM:TO (ns), steps of a chosen range, or the whole capture.';
COMMENT ON COLUMN main.whatif.scenario IS 'The change, as options of tracedb whatif; no change for the recording itself.';
COMMENT ON COLUMN main.whatif.changes IS 'Number of changes that are made together; 0 for the recording itself. [count]';
COMMENT ON COLUMN main.whatif.ranks IS 'Number of captures that are timed together. [count]';
COMMENT ON COLUMN main.whatif.rank IS 'Rank that ends last under the scenario; NULL if unknown. [-]';
COMMENT ON COLUMN main.whatif.steps IS 'Number of steps in the span; 0 if none is marked. [count]';
COMMENT ON COLUMN main.whatif.measured_ns IS 'Time as recorded, from the start of the first step to the end of the last. [ns]';
COMMENT ON COLUMN main.whatif.predicted_ns IS 'The same time under the scenario. [ns]';
COMMENT ON COLUMN main.whatif.gain_percent IS 'By how much less that is. [percent]';
COMMENT ON COLUMN main.whatif.bound_by IS 'What takes most of the critical path under the scenario (critical_path.bound_by).';
COMMENT ON COLUMN main.whatif.limit_ns IS 'The time if the change were taken as far as it goes: the work takes no time. [ns]';
COMMENT ON COLUMN main.whatif.limit_percent IS 'By how much less that is: the largest possible gain. [percent]';
COMMENT ON COLUMN main.whatif.predicted_at IS 'When it was predicted, UTC.';

CREATE SCHEMA meta;
CREATE TABLE meta.schema_version (
    version INTEGER NOT NULL,
    tracedb_version VARCHAR NOT NULL,
    applied_at TIMESTAMP NOT NULL
);
COMMENT ON TABLE meta.schema_version IS 'Schema version of this file; one row.';
COMMENT ON COLUMN meta.schema_version.version IS 'Schema version.';
COMMENT ON COLUMN meta.schema_version.tracedb_version IS 'Version of tracedb that created the file.';
COMMENT ON COLUMN meta.schema_version.applied_at IS 'When the schema was created, UTC.';
CREATE TABLE meta.owed (
    fact VARCHAR NOT NULL,
    capture_id INTEGER NOT NULL
);
COMMENT ON TABLE meta.owed IS 'Derived facts still to be computed, for example after a killed ingest; normally empty. The next tracedb ingest computes them.';
COMMENT ON COLUMN meta.owed.fact IS 'The derived fact: clock_alignment or graph_links.';
COMMENT ON COLUMN meta.owed.capture_id IS 'Capture that was loaded after the fact was last computed.';
CREATE TABLE meta.view_version (
    version VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    sha256 VARCHAR NOT NULL
);
COMMENT ON TABLE meta.view_version IS 'The installed views, with the digest of the file that created each.';
COMMENT ON COLUMN meta.view_version.version IS 'View version, such as v1.';
COMMENT ON COLUMN meta.view_version.name IS 'View name.';
COMMENT ON COLUMN meta.view_version.sha256 IS 'SHA-256 of the view''s SQL file.';
