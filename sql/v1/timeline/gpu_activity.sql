-- What ran when on which stream, with the ranks of a run on one clock?
-- Grain: GPU event. The common clock is that of v1._common_clock: corrected by the alignment of the ranks if known,
-- else as recorded. Events without a recorded stream are placed on their hardware queue.
CREATE VIEW v1.gpu_activity AS
SELECT
    /* by e */
    e.capture_id,
    e.event_id,
    e.source,
    e.rank,
    e.labels,
    k.cycle,
    k.set_id,
    e.device_id,
    CASE
        WHEN e.stream_id IS NOT NULL THEN 'stream ' || e.stream_id
        WHEN e.queue_id IS NOT NULL THEN 'queue ' || e.queue_id
    END AS lane,
    coalesce(e.stream_id, e.queue_id) AS lane_number,
    e.kind,
    e.name,
    e.class,
    e.start_ns,
    e.duration_ns,
    k.clock,
    CASE WHEN k.clock <> 'incomparable' THEN
        e.start_ns + k.zero_ns - k.offset_ns
            - round((e.start_ns + k.zero_ns - k.offset_ns - k.at_ns) * k.stretch)::BIGINT
    END AS common_start_ns
FROM v1._gpu_event AS e /* join e */
LEFT JOIN v1._common_clock AS k ON k.capture_id = e.capture_id
WHERE true /* filter e */;

COMMENT ON VIEW v1.gpu_activity IS 'Every GPU event with its stream, on the common clock of its run. Grain: GPU event.';
COMMENT ON COLUMN v1.gpu_activity.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN v1.gpu_activity.event_id IS 'Number of the event within the capture (kernel_event.event_id). [-]';
COMMENT ON COLUMN v1.gpu_activity.source IS 'Profiler or format of the capture.';
COMMENT ON COLUMN v1.gpu_activity.rank IS 'Rank of the capture; NULL if unknown. [-]';
COMMENT ON COLUMN v1.gpu_activity.labels IS 'Labels of the capture: sweep, threads, channels and others.';
COMMENT ON COLUMN v1.gpu_activity.cycle IS 'Recording number, from 1 in time order, if the ranks recorded more than once; else NULL. [-]';
COMMENT ON COLUMN v1.gpu_activity.set_id IS 'Run: the lowest capture number among the ranks that recorded together. [-]';
COMMENT ON COLUMN v1.gpu_activity.device_id IS 'Device number within the capture. [-]';
COMMENT ON COLUMN v1.gpu_activity.lane IS 'Stream, such as stream 7, or hardware queue if no stream was recorded; NULL if neither was.';
COMMENT ON COLUMN v1.gpu_activity.lane_number IS 'Number of the stream or queue. [-]';
COMMENT ON COLUMN v1.gpu_activity.kind IS 'kernel, memcpy, memset or graph (graph replay recorded only as a whole).';
COMMENT ON COLUMN v1.gpu_activity.name IS 'Name as recorded.';
COMMENT ON COLUMN v1.gpu_activity.class IS 'Class of the kernel; copy for copies and memsets, graph for graph replays.';
COMMENT ON COLUMN v1.gpu_activity.start_ns IS 'Start on the device, on the capture''s clock. [ns]';
COMMENT ON COLUMN v1.gpu_activity.duration_ns IS 'Duration as recorded. [ns]';
COMMENT ON COLUMN v1.gpu_activity.clock IS 'How the capture''s clock relates to the others of its run: aligned (by collectives, or only one capture), recorded (comparable as recorded), incomparable.';
COMMENT ON COLUMN v1.gpu_activity.common_start_ns IS 'Start on the common clock of the run (Unix time if known); NULL if clocks cannot be compared. [ns]';
