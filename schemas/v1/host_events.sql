-- What the host did: API calls, waits, operators, ranges and Python frames. One row per recorded event.

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
