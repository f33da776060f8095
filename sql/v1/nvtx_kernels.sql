-- Which kernels does each range launch? As nsys stats nvtx_kern_sum: a kernel counts in every range around it.
-- Grain: rule × range × thread × kernel name. Kernels outside all ranges stand under the range NULL and the thread
-- that launched them, as in nsys, where the capture has ranges at all. Sums are whole numbers, exact for every row
-- order (see top_kernels).
CREATE VIEW v1.nvtx_kernels AS
WITH calls AS (
    SELECT
        /* by e */
        m.rule,
        m.name AS range_name, m.domain, m.style, m.process_id, m.thread_id,
        e.name AS kernel,
        e.capture_id AS clock_id, m.annotation_id,
        e.duration_ns
    FROM v1._gpu_event AS e /* join e */
    INNER JOIN v1._range_kernel AS m ON m.capture_id = e.capture_id AND m.event_id = e.event_id
    WHERE e.kind = 'kernel' /* filter e */
    UNION ALL
    SELECT
        /* by e */
        u.rule,
        NULL AS range_name, NULL AS domain, NULL AS style, l.process_id, l.thread_id,
        e.name AS kernel,
        NULL AS clock_id, NULL AS annotation_id,
        e.duration_ns
    FROM v1._gpu_event AS e /* join e */
    INNER JOIN v1._capture_rule AS u ON u.capture_id = e.capture_id
    LEFT JOIN main.launch AS l ON l.capture_id = e.capture_id AND l.launch_id = e.launch_id
    WHERE
        e.kind = 'kernel'
        AND EXISTS (
            SELECT 1 FROM main.annotation AS a
            WHERE a.capture_id = e.capture_id AND a.style NOT IN ('mark', 'gpu_projection')
        )
        AND NOT EXISTS (
            SELECT 1 FROM main.annotation_kernel AS m
            WHERE m.capture_id = e.capture_id AND m.event_id = e.event_id AND m.rule = u.rule
        ) /* filter e */
),
sums AS (
    SELECT
        /* by */
        rule, range_name, domain, style, process_id, thread_id, kernel,
        count(DISTINCT (clock_id, annotation_id)) FILTER (annotation_id IS NOT NULL) AS range_instances,
        count(*) AS calls,
        sum(duration_ns) AS total_ns,
        sum(duration_ns::HUGEINT * duration_ns) AS squares,
        median(duration_ns) AS median_ns,
        min(duration_ns) AS min_ns,
        max(duration_ns) AS max_ns
    FROM calls
    GROUP BY /* by */ rule, range_name, domain, style, process_id, thread_id, kernel
)
SELECT
    /* by */
    rule,
    range_name AS range,
    domain,
    style,
    process_id,
    thread_id,
    kernel,
    range_instances,
    calls,
    total_ns::BIGINT AS total_ns,
    total_ns / calls AS avg_ns,
    median_ns,
    min_ns,
    max_ns,
    CASE WHEN calls = 1 THEN 0.0 ELSE sqrt((
        squares - total_ns // calls * (total_ns + total_ns % calls) - (total_ns % calls) ** 2 / calls
    ) / (calls - 1)) END AS stddev_ns
FROM sums;

COMMENT ON VIEW v1.nvtx_kernels IS 'Kernels of each range, as nsys stats nvtx_kern_sum: a kernel counts in every range around it. Grain: rule × range × thread × kernel name.';
COMMENT ON COLUMN v1.nvtx_kernels.rule IS 'How kernels are put into ranges: thread (launched inside on the same thread), process (launched inside on any thread), time (started inside; where launches were not recorded).';
COMMENT ON COLUMN v1.nvtx_kernels.range IS 'Text of the range; NULL for kernels that lie in none.';
COMMENT ON COLUMN v1.nvtx_kernels.domain IS 'NVTX domain; NULL for the default one.';
COMMENT ON COLUMN v1.nvtx_kernels.style IS 'push_pop, start_end, user (record_function), python_function.';
COMMENT ON COLUMN v1.nvtx_kernels.process_id IS 'Process of the range (of the launch, where range is NULL).';
COMMENT ON COLUMN v1.nvtx_kernels.thread_id IS 'Thread of the range (of the launch, where range is NULL).';
COMMENT ON COLUMN v1.nvtx_kernels.kernel IS 'Kernel name as recorded.';
COMMENT ON COLUMN v1.nvtx_kernels.range_instances IS 'Number of instances of the range that hold this kernel; 0 where range is NULL.';
COMMENT ON COLUMN v1.nvtx_kernels.calls IS 'Number of calls.';
COMMENT ON COLUMN v1.nvtx_kernels.total_ns IS 'Sum of durations, in ns.';
COMMENT ON COLUMN v1.nvtx_kernels.avg_ns IS 'Mean duration, in ns.';
COMMENT ON COLUMN v1.nvtx_kernels.median_ns IS 'Median duration, mean of the middle two, in ns.';
COMMENT ON COLUMN v1.nvtx_kernels.min_ns IS 'Shortest duration, in ns.';
COMMENT ON COLUMN v1.nvtx_kernels.max_ns IS 'Longest duration, in ns.';
COMMENT ON COLUMN v1.nvtx_kernels.stddev_ns IS 'Sample standard deviation of durations, 0 for one call, in ns.';
