-- tracedb schema, version 1. Facts only: what the profiler recorded.
-- Times are signed 64-bit integer nanoseconds on the capture's own clock; capture.clock_zero_unix_ns places
-- that clock in the world. A column that a source does not record is NULL ("not captured"), never 0.
-- Keys are not declared as indexes on the event tables: an index over tens of millions of rows costs more
-- than it saves, and the pipeline numbers the rows itself.

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
COMMENT ON COLUMN main.capture.source IS 'Which ingester read it: torch, nsys, rocprofv3, rocpd or an outside one.';
COMMENT ON COLUMN main.capture.path IS 'Path of the file that was read, as given to ingest.';
COMMENT ON COLUMN main.capture.part IS 'Number of the process within the file; 0 unless one file held several. [-]';
COMMENT ON COLUMN main.capture.sha256 IS 'SHA-256 over the bytes of all its files, as stored on disk; makes a second ingest a no-op.';
COMMENT ON COLUMN main.capture.size_bytes IS 'Size of all its files on disk. [bytes]';
COMMENT ON COLUMN main.capture.host IS 'Host name where the trace says it, else NULL.';
COMMENT ON COLUMN main.capture.pid IS 'Process id on the recording machine. [-]';
COMMENT ON COLUMN main.capture.rank IS 'Rank: from the trace, else from path or file name, else NULL. [-]';
COMMENT ON COLUMN main.capture.world_size IS 'Number of ranks of the job where the trace says it. [count]';
COMMENT ON COLUMN main.capture.tool_version IS 'Version text of the recording tool or trace format.';
COMMENT ON COLUMN main.capture.clock_zero_unix_ns IS 'Unix time of the capture''s clock zero; NULL if unknown. [ns]';
COMMENT ON COLUMN main.capture.status IS 'complete, truncated (the file was cut), repaired (events were mended or lost), no_gpu_activity.';
COMMENT ON COLUMN main.capture.labels IS 'Labels from the path, --label and --labels-from: sweep, threads, channels and others.';
COMMENT ON COLUMN main.capture.events_read IS 'Events met in the files: those that gave a row plus events_skipped. [count]';
COMMENT ON COLUMN main.capture.events_skipped IS 'Events that gave no row; ingest_issue says why. [count]';
COMMENT ON COLUMN main.capture.rows_written IS 'Rows that the events gave, over all event tables. [count]';
COMMENT ON COLUMN main.capture.ingester IS 'Ingester and version of its distribution.';
COMMENT ON COLUMN main.capture.metadata IS 'JSON text of a fixed choice of trace header fields (format, versions, backend, process groups).';
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
COMMENT ON TABLE main.device IS 'GPU of a capture: those it used, and those it could see.';
COMMENT ON COLUMN main.device.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN main.device.device_id IS 'Device number as the GPU rows of this capture use it. [-]';
COMMENT ON COLUMN main.device.vendor IS 'NVIDIA, AMD or another maker.';
COMMENT ON COLUMN main.device.name IS 'Product name as recorded; NULL if not captured.';
COMMENT ON COLUMN main.device.sm_count IS 'Streaming multiprocessors or compute units. [count]';
COMMENT ON COLUMN main.device.max_clock_mhz IS 'Highest clock of the compute units; NULL if not captured. [MHz]';
COMMENT ON COLUMN main.device.memory_bytes IS 'Device memory. [bytes]';
COMMENT ON COLUMN main.device.uuid IS 'Device UUID where recorded.';
COMMENT ON COLUMN main.device.arch IS 'Architecture, such as sm_90 or gfx94x.';
COMMENT ON COLUMN main.device.is_used IS 'Whether a GPU row of the capture names this device.';

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
    is_counted BOOLEAN,
    time_fault VARCHAR
);
COMMENT ON TABLE main.kernel_event IS 'One GPU activity: a kernel, a copy, a memset or a graph replay recorded as a whole.';
COMMENT ON COLUMN main.kernel_event.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN main.kernel_event.event_id IS 'Number of the event within the capture. [-]';
COMMENT ON COLUMN main.kernel_event.kind IS 'kernel, memcpy, memset or graph.';
COMMENT ON COLUMN main.kernel_event.name IS 'Name as recorded, demangled where the tool did so.';
COMMENT ON COLUMN main.kernel_event.start_ns IS 'Start on the device, on the capture''s clock. [ns]';
COMMENT ON COLUMN main.kernel_event.duration_ns IS 'Duration as recorded. [ns]';
COMMENT ON COLUMN main.kernel_event.device_id IS 'Device number within the capture. [-]';
COMMENT ON COLUMN main.kernel_event.stream_id IS 'Stream number; unique only per device and context. [-]';
COMMENT ON COLUMN main.kernel_event.queue_id IS 'Hardware queue (AMD). [-]';
COMMENT ON COLUMN main.kernel_event.context_id IS 'CUDA context. [-]';
COMMENT ON COLUMN main.kernel_event.correlation_id IS 'Tool''s number that joins launch and activity; unique per process at best. [-]';
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
COMMENT ON COLUMN main.kernel_event.occupancy_percent IS 'Estimated achieved occupancy, 0 to 100. [percent]';
COMMENT ON COLUMN main.kernel_event.bytes IS 'Bytes copied or set. [bytes]';
COMMENT ON COLUMN main.kernel_event.copy_kind IS 'Direction of a copy: HtoD, DtoH, DtoD, HtoH, PtoP.';
COMMENT ON COLUMN main.kernel_event.collective IS 'Collective as recorded with the event (allreduce, _allgather_base …).';
COMMENT ON COLUMN main.kernel_event.message_in_elements IS 'Elements that go into the collective on this rank. [count]';
COMMENT ON COLUMN main.kernel_event.message_out_elements IS 'Elements that come out of the collective on this rank. [count]';
COMMENT ON COLUMN main.kernel_event.message_in_splits IS 'Share of the message that goes to each rank of the group, JSON text as recorded; NULL if not recorded or even.';
COMMENT ON COLUMN main.kernel_event.dtype IS 'Element type of the collective as recorded.';
COMMENT ON COLUMN main.kernel_event.group_name IS 'Process group of the collective.';
COMMENT ON COLUMN main.kernel_event.group_size IS 'Ranks in the process group. [count]';
COMMENT ON COLUMN main.kernel_event.group_ranks IS 'Ranks of the process group, JSON text as recorded.';
COMMENT ON COLUMN main.kernel_event.sequence IS 'Sequence number of the collective in its group. [-]';

COMMENT ON COLUMN main.kernel_event.is_counted IS 'Whether hardware counters were read during this dispatch: its duration is then not that of a plain run. NULL where counters are not known of.';
COMMENT ON COLUMN main.kernel_event.time_fault IS 'Why its times cannot be true (far_from_others, too_long, before_launch; an ingester may give reasons of its own); NULL for nearly all. What has one is left out of spans, sums, gaps and averages.';

CREATE TABLE main.launch (
    capture_id INTEGER NOT NULL,
    launch_id BIGINT NOT NULL,
    correlation_id BIGINT,
    name VARCHAR NOT NULL,
    process_id BIGINT,
    thread_id BIGINT,
    start_ns BIGINT NOT NULL,
    duration_ns BIGINT NOT NULL CHECK (duration_ns >= 0),
    time_fault VARCHAR
);
COMMENT ON TABLE main.launch IS 'One runtime or driver API call.';
COMMENT ON COLUMN main.launch.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN main.launch.launch_id IS 'Number of the call within the capture. [-]';
COMMENT ON COLUMN main.launch.correlation_id IS 'Tool''s correlation number; not unique. [-]';
COMMENT ON COLUMN main.launch.name IS 'Function name, such as cudaLaunchKernel.';
COMMENT ON COLUMN main.launch.process_id IS 'Process that called. [-]';
COMMENT ON COLUMN main.launch.thread_id IS 'Thread that called. [-]';
COMMENT ON COLUMN main.launch.start_ns IS 'Start of the call, on the capture''s clock. [ns]';
COMMENT ON COLUMN main.launch.duration_ns IS 'Duration of the call. [ns]';
COMMENT ON COLUMN main.launch.time_fault IS 'Why its times cannot be true (far_from_others, too_long, before_launch; an ingester may give reasons of its own); NULL for nearly all. What has one is left out of spans, sums, gaps and averages.';

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
COMMENT ON COLUMN main.op.parent_op_id IS 'Nearest operator on the same thread that contains it in time; NULL at the top. [-]';
COMMENT ON COLUMN main.op.sequence_number IS 'Autograd sequence number; links forward and backward. [-]';
COMMENT ON COLUMN main.op.forward_thread_id IS 'Thread of the forward operator that a backward one belongs to. [-]';
COMMENT ON COLUMN main.op.input_dims IS 'Shapes of the inputs, JSON text as recorded; NULL if shapes were not recorded.';
COMMENT ON COLUMN main.op.input_types IS 'Element types of the inputs, JSON text as recorded.';
COMMENT ON COLUMN main.op.input_strides IS 'Strides of the inputs, JSON text as recorded.';
COMMENT ON COLUMN main.op.concrete_inputs IS 'Values of scalar inputs, JSON text as recorded.';

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
COMMENT ON COLUMN main.annotation.domain IS 'NVTX domain; NULL for the default one and for sources without domains.';
COMMENT ON COLUMN main.annotation.style IS 'push_pop, start_end, mark, user (record_function), gpu_projection (made by the profiler), python_function.';
COMMENT ON COLUMN main.annotation.process_id IS 'Process that annotated. [-]';
COMMENT ON COLUMN main.annotation.thread_id IS 'Thread that annotated. [-]';
COMMENT ON COLUMN main.annotation.device_id IS 'Device, for gpu_projection only. [-]';
COMMENT ON COLUMN main.annotation.stream_id IS 'Stream, for gpu_projection only. [-]';
COMMENT ON COLUMN main.annotation.start_ns IS 'Start, on the capture''s clock. [ns]';
COMMENT ON COLUMN main.annotation.duration_ns IS 'Duration; NULL for a mark or a range still open. [ns]';
COMMENT ON COLUMN main.annotation.is_open IS 'Whether the range was still open when the capture ended.';
COMMENT ON COLUMN main.annotation.parent_id IS 'Nearest range on the same thread that contains it; NULL at the top. [-]';
COMMENT ON COLUMN main.annotation.depth IS 'Number of enclosing ranges on the thread; 0 at the top. [count]';
COMMENT ON COLUMN main.annotation.time_fault IS 'Why its times cannot be true (far_from_others, too_long, before_launch; an ingester may give reasons of its own); NULL for nearly all. What has one is left out of spans, sums, gaps and averages.';

CREATE TABLE main.annotation_kernel (
    capture_id INTEGER NOT NULL,
    annotation_id BIGINT NOT NULL,
    event_id BIGINT NOT NULL,
    rule VARCHAR NOT NULL CHECK (rule IN ('thread', 'process', 'time'))
);
COMMENT ON TABLE main.annotation_kernel IS 'Derived at load: the innermost range that encloses a GPU event, per rule and annotating thread. Outer ranges follow annotation.parent_id.';
COMMENT ON COLUMN main.annotation_kernel.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN main.annotation_kernel.annotation_id IS 'Innermost enclosing range. [-]';
COMMENT ON COLUMN main.annotation_kernel.event_id IS 'GPU event (kernel_event.event_id). [-]';
COMMENT ON COLUMN main.annotation_kernel.rule IS 'thread: the launch lies in the range on its own thread; process: on any thread of the process; time: the GPU event starts in the range (only where launches were not recorded).';

CREATE TABLE main.clipped_event (
    capture_id INTEGER NOT NULL,
    event_id BIGINT NOT NULL,
    clipped_duration_ns BIGINT NOT NULL CHECK (clipped_duration_ns >= 0)
);
COMMENT ON TABLE main.clipped_event IS 'Derived at load: GPU events of AMD devices that were recorded as running into the next one of their queue (failing that, stream). Late completion timestamps of ROCm do that.';
COMMENT ON COLUMN main.clipped_event.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN main.clipped_event.event_id IS 'GPU event (kernel_event.event_id). [-]';
COMMENT ON COLUMN main.clipped_event.clipped_duration_ns IS 'Duration up to the next later start on the queue. [ns]';

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
COMMENT ON TABLE main.clock_alignment IS 'Derived at the end of ingest: how the clock of a capture stands to that of another rank, from collectives, which all ranks end together.';
COMMENT ON COLUMN main.clock_alignment.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN main.clock_alignment.reference_capture_id IS 'Capture whose clock is the common one: the lowest rank that collectives connect it with. [-]';
COMMENT ON COLUMN main.clock_alignment.at_ns IS 'Moment on the common clock to which offset_ns belongs (Unix time where clocks are placed in the world). [ns]';
COMMENT ON COLUMN main.clock_alignment.offset_ns IS 'By how much this clock is ahead of the common one at at_ns; to be subtracted. [ns]';
COMMENT ON COLUMN main.clock_alignment.drift_ppm IS 'By how many ns per ms this clock gains on the common one, times 1000 (parts per million); NULL if too few calls tell. [ppm]';
COMMENT ON COLUMN main.clock_alignment.uses_drift IS 'Whether the drift is beyond its own error, so that views correct times by it.';
COMMENT ON COLUMN main.clock_alignment.calls IS 'Number of collective calls that the estimate is made from. [count]';
COMMENT ON COLUMN main.clock_alignment.span_ns IS 'Time from the first to the last of them. [ns]';
COMMENT ON COLUMN main.clock_alignment.residual_median_ns IS 'Median over calls of the difference of ends that is left after correction. [ns]';
COMMENT ON COLUMN main.clock_alignment.residual_p99_ns IS 'The 99th percentile of that difference. [ns]';

CREATE TABLE main.time_bound (
    name VARCHAR NOT NULL,
    limit_ns BIGINT NOT NULL CHECK (limit_ns > 0),
    applied_ns BIGINT NOT NULL
);
COMMENT ON TABLE main.time_bound IS 'Bounds beyond which times cannot be true. Set limit_ns by UPDATE: the next ingest into the file judges every capture anew.';
COMMENT ON COLUMN main.time_bound.name IS 'before_launch, after_launch, far, far_without_calls or capture; docs/ingest.md says what each bounds.';
COMMENT ON COLUMN main.time_bound.limit_ns IS 'The bound. [ns]';
COMMENT ON COLUMN main.time_bound.applied_ns IS 'The bound by which time_fault and clock_fault of this file were worked out. [ns]';
INSERT INTO main.time_bound VALUES
    ('before_launch', 100000000, 100000000),
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
COMMENT ON TABLE main.clock_fault IS 'Derived at load: devices whose clock lies apart from that of the API calls. Times of the device among themselves hold; nothing is said of the time between a call and its kernel.';
COMMENT ON COLUMN main.clock_fault.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN main.clock_fault.device_id IS 'Device number within the capture. [-]';
COMMENT ON COLUMN main.clock_fault.offset_ns IS 'Mean over GPU events of their start less that of their call. [ns]';
COMMENT ON COLUMN main.clock_fault.events IS 'Number of GPU events with a call that this is made from. [count]';

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
COMMENT ON COLUMN main.counter.value IS 'Value in the counter''s own unit. [-]';

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
    start_ns BIGINT NOT NULL
);
COMMENT ON TABLE main.memory_event IS 'One allocation or release of the framework''s allocator; filled only on request (--memory-events).';
COMMENT ON COLUMN main.memory_event.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN main.memory_event.memory_event_id IS 'Number of the event within the capture. [-]';
COMMENT ON COLUMN main.memory_event.device_type IS 'Device type number of the framework: 0 CPU, 1 CUDA or HIP. [-]';
COMMENT ON COLUMN main.memory_event.device_id IS 'Device number. [-]';
COMMENT ON COLUMN main.memory_event.address IS 'Address of the block. [-]';
COMMENT ON COLUMN main.memory_event.bytes IS 'Bytes allocated; negative for a release. [bytes]';
COMMENT ON COLUMN main.memory_event.total_allocated_bytes IS 'Bytes allocated on the device after the event. [bytes]';
COMMENT ON COLUMN main.memory_event.total_reserved_bytes IS 'Bytes reserved on the device after the event. [bytes]';
COMMENT ON COLUMN main.memory_event.process_id IS 'Process. [-]';
COMMENT ON COLUMN main.memory_event.thread_id IS 'Thread. [-]';
COMMENT ON COLUMN main.memory_event.start_ns IS 'Time of the event, on the capture''s clock. [ns]';

CREATE TABLE main.sample_status (
    capture_id INTEGER,
    operator VARCHAR NOT NULL,
    dtype VARCHAR NOT NULL,
    device VARCHAR NOT NULL,
    shape MAP(VARCHAR, BIGINT) NOT NULL,
    status VARCHAR NOT NULL CHECK (status IN ('sampled', 'invalid', 'out_of_memory', 'error')),
    detail VARCHAR,
    sampled_at TIMESTAMP NOT NULL
);
COMMENT ON TABLE main.sample_status IS 'What became of one shape of a sweep of tracedb sample.';
COMMENT ON COLUMN main.sample_status.capture_id IS 'Capture that holds its iterations; NULL where it was not sampled. [-]';
COMMENT ON COLUMN main.sample_status.operator IS 'Operator name, such as linear1.';
COMMENT ON COLUMN main.sample_status.dtype IS 'Element type: fp16, bf16 or fp32.';
COMMENT ON COLUMN main.sample_status.device IS 'Product name of the GPU, or cpu.';
COMMENT ON COLUMN main.sample_status.shape IS 'Shape parameter to value. [-]';
COMMENT ON COLUMN main.sample_status.status IS 'sampled; invalid (a rule says that the shape does not exist); out_of_memory; error.';
COMMENT ON COLUMN main.sample_status.detail IS 'Why it was not sampled, in words; NULL where it was.';
COMMENT ON COLUMN main.sample_status.sampled_at IS 'When it ran, UTC.';

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
COMMENT ON TABLE main.operator_sample IS 'One time of a sampled operator that was summed up elsewhere, without its events. Samples recorded as ranges are in annotation.';
COMMENT ON COLUMN main.operator_sample.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN main.operator_sample.sample_id IS 'Number of the sample within the capture. [-]';
COMMENT ON COLUMN main.operator_sample.gpu IS 'GPU name as recorded.';
COMMENT ON COLUMN main.operator_sample.operator IS 'Operator name, such as linear1 or allreduce.';
COMMENT ON COLUMN main.operator_sample.pass IS 'fwd, bwd, step (an optimizer''s) or comm (a collective).';
COMMENT ON COLUMN main.operator_sample.dtype IS 'Element type: fp16, bf16, fp32, fp64.';
COMMENT ON COLUMN main.operator_sample.shape IS 'Parameter name to value. [-]';
COMMENT ON COLUMN main.operator_sample.statistic IS 'What the time is, such as span_trimmed_mean.';
COMMENT ON COLUMN main.operator_sample.time_ns IS 'The time, rounded to whole ns. [ns]';

CREATE TABLE main.ingest_issue (
    capture_id INTEGER,
    code VARCHAR NOT NULL,
    severity VARCHAR NOT NULL DEFAULT 'note' CHECK (severity IN ('note', 'warning')),
    count BIGINT NOT NULL DEFAULT 1,
    skipped BIGINT NOT NULL DEFAULT 0,
    detail VARCHAR
);
COMMENT ON TABLE main.ingest_issue IS 'What ingest skipped, repaired, guessed or left aside.';
COMMENT ON COLUMN main.ingest_issue.capture_id IS 'Capture; NULL where it concerns a file that gave none. [-]';
COMMENT ON COLUMN main.ingest_issue.code IS 'Short fixed code, such as event_repaired or flow_events.';
COMMENT ON COLUMN main.ingest_issue.severity IS 'note: left aside by design; warning: the file was at fault, and --strict fails on it.';
COMMENT ON COLUMN main.ingest_issue.count IS 'How many events it concerns. [count]';
COMMENT ON COLUMN main.ingest_issue.skipped IS 'How many of them gave no row; sums to capture.events_skipped. [count]';
COMMENT ON COLUMN main.ingest_issue.detail IS 'What was met, where, and what was done.';

CREATE TABLE main.kernel_rule (
    priority INTEGER NOT NULL,
    pattern VARCHAR NOT NULL,
    class VARCHAR NOT NULL
);
COMMENT ON TABLE main.kernel_rule IS 'The user''s own class rules, tried before the shipped ones; empty at first.';
COMMENT ON COLUMN main.kernel_rule.priority IS 'Lowest number wins. [-]';
COMMENT ON COLUMN main.kernel_rule.pattern IS 'Regular expression (RE2) searched in the kernel name.';
COMMENT ON COLUMN main.kernel_rule.class IS 'Class to give.';

CREATE SCHEMA meta;
CREATE TABLE meta.schema_version (
    version INTEGER NOT NULL,
    tracedb_version VARCHAR NOT NULL,
    applied_at TIMESTAMP NOT NULL
);
COMMENT ON TABLE meta.schema_version IS 'Which schema this file has; one row.';
COMMENT ON COLUMN meta.schema_version.version IS 'Number of the schema version.';
COMMENT ON COLUMN meta.schema_version.tracedb_version IS 'tracedb that created the file.';
COMMENT ON COLUMN meta.schema_version.applied_at IS 'When, UTC.';
CREATE TABLE meta.owed (
    fact VARCHAR NOT NULL,
    capture_id INTEGER NOT NULL
);
COMMENT ON TABLE meta.owed IS 'Derived facts that are still to be worked out, as after an ingest that was killed; empty when all is done. The next tracedb ingest does it.';
COMMENT ON COLUMN meta.owed.fact IS 'Which: clock_alignment.';
COMMENT ON COLUMN meta.owed.capture_id IS 'Capture that was loaded since it was worked out.';
CREATE TABLE meta.view_version (
    version VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    sha256 VARCHAR NOT NULL
);
COMMENT ON TABLE meta.view_version IS 'Which views are installed, with the digest of the file that made each.';
COMMENT ON COLUMN meta.view_version.version IS 'View version, such as v1.';
COMMENT ON COLUMN meta.view_version.name IS 'View name.';
COMMENT ON COLUMN meta.view_version.sha256 IS 'SHA-256 of the view''s file.';
