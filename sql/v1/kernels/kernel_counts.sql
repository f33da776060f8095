-- How often does each kernel run on each device, on compute streams and on communication streams?
-- Grain: capture × device × category of the stream × name. Copies and memsets are counted, API calls are not.
CREATE VIEW v1.kernel_counts AS
WITH events AS (
    SELECT
        /* by e */
        e.capture_id AS clock_id,
        e.device_id AS gpu_id,
        c.category,
        e.name,
        e.duration_ns
    FROM v1._unclassed_event AS e /* join e */
    LEFT JOIN v1._stream_category AS c ON c.capture_id = e.capture_id
        AND c.device_id IS NOT DISTINCT FROM e.device_id
        AND c.context_id IS NOT DISTINCT FROM e.context_id
        AND c.stream_id IS NOT DISTINCT FROM e.stream_id
    WHERE e.kind IN ('kernel', 'memcpy', 'memset') /* filter e */
)
SELECT
    /* by v */
    /* grain */ c.capture_id, c.rank, c.labels, v.gpu_id AS device_id, /* end grain */
    coalesce(v.category, 'compute') AS category,
    v.name AS kernel_name,
    count(*) AS count,
    sum(v.duration_ns)::BIGINT AS total_ns
FROM events AS v
LEFT JOIN main.capture AS c ON c.capture_id = v.clock_id
GROUP BY ALL;

COMMENT ON VIEW v1.kernel_counts IS 'Number of calls of each kernel, on compute and communication streams. Grain: capture × device × category × name.';
COMMENT ON COLUMN v1.kernel_counts.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN v1.kernel_counts.rank IS 'Rank of the capture; NULL if unknown. [-]';
COMMENT ON COLUMN v1.kernel_counts.labels IS 'Labels of the capture.';
COMMENT ON COLUMN v1.kernel_counts.device_id IS 'Device number within the capture. [-]';
COMMENT ON COLUMN v1.kernel_counts.category IS 'communication if collectives take at least half of the time on the stream, else compute.';
COMMENT ON COLUMN v1.kernel_counts.kernel_name IS 'Name as recorded.';
COMMENT ON COLUMN v1.kernel_counts.count IS 'Number of calls. [count]';
COMMENT ON COLUMN v1.kernel_counts.total_ns IS 'Sum of durations. [ns]';
