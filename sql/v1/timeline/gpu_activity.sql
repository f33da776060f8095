-- What ran when on which stream, with the ranks of a run on one clock?
-- Grain: GPU event. The common clock is the one of v1._common_clock: corrected by the alignment of the ranks where it
-- is known, else as recorded. What a stream is not recorded for lies in its hardware queue.
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

COMMENT ON VIEW v1.gpu_activity IS 'Every GPU event with its stream, on the clock that the ranks of its run share. Grain: GPU event.';
COMMENT ON COLUMN v1.gpu_activity.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN v1.gpu_activity.event_id IS 'Number of the event within the capture (kernel_event.event_id). [-]';
COMMENT ON COLUMN v1.gpu_activity.source IS 'Which ingester read the capture.';
COMMENT ON COLUMN v1.gpu_activity.rank IS 'Rank of the capture; NULL if unknown. [-]';
COMMENT ON COLUMN v1.gpu_activity.labels IS 'Labels of the capture: sweep, threads, channels and others.';
COMMENT ON COLUMN v1.gpu_activity.cycle IS 'Which recording of its ranks, from 1 in the order of time, where ranks recorded more than once; else NULL. [-]';
COMMENT ON COLUMN v1.gpu_activity.set_id IS 'Run: the lowest capture number of the ranks that recorded together. [-]';
COMMENT ON COLUMN v1.gpu_activity.device_id IS 'Device number within the capture. [-]';
COMMENT ON COLUMN v1.gpu_activity.lane IS 'Its stream, such as stream 7, or its hardware queue where no stream was recorded; NULL if neither was.';
COMMENT ON COLUMN v1.gpu_activity.lane_number IS 'Number of that stream or queue. [-]';
COMMENT ON COLUMN v1.gpu_activity.kind IS 'kernel, memcpy, memset or graph (a replay recorded only as a whole).';
COMMENT ON COLUMN v1.gpu_activity.name IS 'Name as recorded.';
COMMENT ON COLUMN v1.gpu_activity.class IS 'Class of the event: of a kernel its class, copy for copies and memsets, graph for replays.';
COMMENT ON COLUMN v1.gpu_activity.start_ns IS 'Start on the device, on the capture''s clock. [ns]';
COMMENT ON COLUMN v1.gpu_activity.duration_ns IS 'Duration as recorded. [ns]';
COMMENT ON COLUMN v1.gpu_activity.clock IS 'How the clock of the capture stands to those of its run: aligned (by collectives, or alone), recorded (as recorded, comparable), incomparable.';
COMMENT ON COLUMN v1.gpu_activity.common_start_ns IS 'Start on the common clock of the run (Unix time where known); NULL where clocks cannot be compared. [ns]';
