-- Facts that are derived at load, because they are too expensive for a view. They can be computed again.

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
