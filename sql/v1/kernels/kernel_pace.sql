-- How regularly is a kernel called? Like nsys's recipe cuda_gpu_kern_pace.
-- Grain: kernel call, counted per capture and device in start order. The calls are sorted by the number of their name:
-- sorting millions of long texts costs more than everything else.
CREATE VIEW v1.kernel_pace AS
-- Grouped, so that the optimiser can drop the join, and with it the sort, where calls are only counted.
WITH names AS (
    SELECT n.name_no, any_value(n.name) AS name
    FROM v1._kernel_number AS n
    GROUP BY n.name_no
),
-- The cast makes DuckDB leave the name behind before it sorts.
events AS (
    SELECT
        /* by e */
        e.capture_id AS clock_id,
        e.event_id,
        e.device_id AS gpu_id,
        n.name_no::INTEGER AS name_no,
        e.start_ns,
        e.duration_ns
    FROM v1._unclassed_event AS e /* join e */
    INNER JOIN v1._kernel_number AS n ON n.name = e.name
    WHERE e.kind = 'kernel' /* filter e */
),
calls AS (
    SELECT
        /* by */
        clock_id, event_id, gpu_id, name_no, start_ns, duration_ns,
        row_number() OVER ordered AS call_index,
        first_value(start_ns) OVER ordered AS first_ns,
        lag(start_ns) OVER ordered AS previous_ns
    FROM events
    WINDOW ordered AS (PARTITION BY /* by */ clock_id, gpu_id, name_no ORDER BY start_ns, event_id)
)
SELECT
    /* by p */
    p.clock_id AS capture_id,
    p.event_id,
    c.rank,
    c.labels,
    p.gpu_id AS device_id,
    n.name,
    p.call_index,
    p.start_ns,
    p.start_ns - p.first_ns AS since_first_ns,
    p.start_ns - p.previous_ns AS interval_ns,
    p.duration_ns
FROM calls AS p
LEFT JOIN names AS n ON n.name_no = p.name_no
LEFT JOIN main.capture AS c ON c.capture_id = p.clock_id;

COMMENT ON VIEW v1.kernel_pace IS 'Each call of a kernel with the time since the previous call, like nsys''s cuda_gpu_kern_pace. Grain: kernel call.';
COMMENT ON COLUMN v1.kernel_pace.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN v1.kernel_pace.event_id IS 'Number of the event within the capture (kernel_event.event_id). [-]';
COMMENT ON COLUMN v1.kernel_pace.rank IS 'Rank of the capture; NULL if unknown. [-]';
COMMENT ON COLUMN v1.kernel_pace.labels IS 'Labels of the capture: sweep, threads, channels and others.';
COMMENT ON COLUMN v1.kernel_pace.device_id IS 'Device number within the capture. [-]';
COMMENT ON COLUMN v1.kernel_pace.name IS 'Kernel name as recorded.';
COMMENT ON COLUMN v1.kernel_pace.call_index IS 'Index of the call of this kernel on its device, from 1, ordered by start. [-]';
COMMENT ON COLUMN v1.kernel_pace.start_ns IS 'Start on the device, on the capture''s clock. [ns]';
COMMENT ON COLUMN v1.kernel_pace.since_first_ns IS 'Start minus the start of the first call. [ns]';
COMMENT ON COLUMN v1.kernel_pace.interval_ns IS 'Start minus the start of the previous call; NULL for the first call. [ns]';
COMMENT ON COLUMN v1.kernel_pace.duration_ns IS 'Duration as recorded. [ns]';
