-- How often does each kernel run on each device, on compute streams and on communication streams?
-- Grain: capture × device × category of the stream × name. Copies and memsets are counted, API calls are not. Events are
-- summed by stream before anything is looked up for it: to group millions of them by labels takes most of the time.
CREATE VIEW v1.kernel_counts AS
WITH sums AS (
    SELECT
        /* by e */
        e.capture_id AS clock_id,
        e.device_id AS gpu_id,
        e.context_id,
        e.stream_id,
        e.name,
        count(*) AS calls,
        sum(e.duration_ns) AS total_ns
    FROM v1._unclassed_event AS e /* join e */
    WHERE e.kind IN ('kernel', 'memcpy', 'memset') /* filter e */
    GROUP BY ALL
)
SELECT
    /* by v */
    /* grain */ c.capture_id, c.rank, c.labels, v.gpu_id AS device_id, /* end grain */
    coalesce(s.category, 'compute') AS category,
    v.name AS kernel_name,
    sum(v.calls)::BIGINT AS count,
    sum(v.total_ns)::BIGINT AS total_ns
FROM sums AS v
LEFT JOIN v1._stream_category AS s ON s.capture_id = v.clock_id
    AND s.device_id IS NOT DISTINCT FROM v.gpu_id
    AND s.context_id IS NOT DISTINCT FROM v.context_id
    AND s.stream_id IS NOT DISTINCT FROM v.stream_id
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
