-- Which kernels does each range launch? Like nsys stats nvtx_kern_sum: a kernel counts in every enclosing range.
-- Grain: rule × range × thread × kernel name. If the capture has ranges, kernels outside all of them have range NULL
-- and the thread that launched them, as in nsys. Every call is repeated for every enclosing range, so texts are
-- numbered first and only numbers are repeated. Sums are integers, exact for every row order (see top_kernels). A call
-- inside two nested instances of one range counts in both, so that times and calls refer to the same rows;
-- nvtx_kern_sum counts such a call once, as nsys does.
CREATE VIEW v1.nvtx_kernels AS
WITH ranges AS (
    SELECT
        a.capture_id, a.annotation_id,
        a.name, a.domain, a.style, a.process_id, a.thread_id,
        dense_rank() OVER (ORDER BY a.name, a.domain, a.style, a.process_id, a.thread_id) AS range_no,
        row_number() OVER (ORDER BY a.capture_id, a.annotation_id) AS instance_no
    FROM main.annotation AS a
    WHERE a.style NOT IN ('mark', 'gpu_projection')
),
kernel_names AS (
    SELECT n.name, n.short_name, row_number() OVER (ORDER BY n.name) AS kernel_no
    FROM v1._kernel_class AS n
),
members AS (
    SELECT DISTINCT m.rule, m.capture_id, m.event_id, c.ancestor_capture_id, c.ancestor_id AS annotation_id
    FROM main.annotation_kernel AS m
    INNER JOIN v1._annotation_ancestor AS c ON c.capture_id = m.capture_id AND c.annotation_id = m.annotation_id
),
calls AS (
    SELECT
        /* by e */
        m.rule, r.range_no, r.instance_no, NULL AS process_id, NULL AS thread_id, n.kernel_no, e.duration_ns
    FROM v1._gpu_event AS e /* join e */
    INNER JOIN kernel_names AS n ON n.name = e.name
    INNER JOIN members AS m ON m.capture_id = e.capture_id AND m.event_id = e.event_id
    INNER JOIN ranges AS r ON r.capture_id = m.ancestor_capture_id AND r.annotation_id = m.annotation_id
    WHERE e.kind = 'kernel' /* filter e */
    UNION ALL
    SELECT
        /* by e */
        u.rule, NULL AS range_no, NULL AS instance_no, l.process_id, l.thread_id, n.kernel_no, e.duration_ns
    FROM v1._gpu_event AS e /* join e */
    INNER JOIN kernel_names AS n ON n.name = e.name
    INNER JOIN v1._capture_rule AS u ON u.capture_id = e.capture_id
    LEFT JOIN main.launch AS l ON l.capture_id = e.capture_id AND l.launch_id = e.launch_id
    WHERE
        e.kind = 'kernel'
        AND EXISTS (SELECT 1 FROM ranges AS r WHERE r.capture_id = e.capture_id)
        AND NOT EXISTS (
            SELECT 1 FROM main.annotation_kernel AS m
            WHERE m.capture_id = e.capture_id AND m.event_id = e.event_id AND m.rule = u.rule
        ) /* filter e */
),
sums AS (
    SELECT
        /* by */
        rule, range_no, process_id, thread_id, kernel_no,
        count(DISTINCT instance_no) AS range_instances,
        count(*) AS calls,
        sum(duration_ns) AS total_ns,
        sum(duration_ns::HUGEINT * duration_ns) AS squares,
        median(duration_ns) AS median_ns,
        min(duration_ns) AS min_ns,
        max(duration_ns) AS max_ns
    FROM calls
    GROUP BY /* by */ rule, range_no, process_id, thread_id, kernel_no
),
range_texts AS (
    SELECT DISTINCT range_no, name, domain, style, process_id, thread_id
    FROM ranges
)
SELECT
    /* by */
    s.rule,
    t.name AS range,
    t.domain,
    t.style,
    coalesce(t.process_id, s.process_id) AS process_id,
    coalesce(t.thread_id, s.thread_id) AS thread_id,
    n.name AS kernel,
    s.range_instances,
    s.calls,
    s.total_ns::BIGINT AS total_ns,
    s.total_ns / s.calls AS avg_ns,
    s.median_ns,
    s.min_ns,
    s.max_ns,
    v1._sample_stddev(s.calls, s.total_ns, s.squares) AS stddev_ns,
    n.short_name
FROM sums AS s
INNER JOIN kernel_names AS n ON n.kernel_no = s.kernel_no
LEFT JOIN range_texts AS t ON t.range_no = s.range_no;

COMMENT ON VIEW v1.nvtx_kernels IS 'Kernels of each range, like nsys stats nvtx_kern_sum. A kernel counts in every enclosing range. There are rows for each rule of range membership, which do not add up: select one (WHERE rule = ''process''). Grain: rule × range × thread × kernel name.';
COMMENT ON COLUMN v1.nvtx_kernels.rule IS 'How GPU events are assigned to ranges: thread (launched inside, on the thread of the range), process (launched inside, on any thread, such as autograd''s), time (started inside; used if launches were not recorded). There is a row for each rule: select one. The report uses thread, like nsys.';
COMMENT ON COLUMN v1.nvtx_kernels.range IS 'Text of the range; NULL for kernels outside all ranges.';
COMMENT ON COLUMN v1.nvtx_kernels.domain IS 'NVTX domain; NULL for the default domain.';
COMMENT ON COLUMN v1.nvtx_kernels.style IS 'push_pop, start_end, user (record_function), python_function.';
COMMENT ON COLUMN v1.nvtx_kernels.process_id IS 'Process of the range (of the launch, if range is NULL). [-]';
COMMENT ON COLUMN v1.nvtx_kernels.thread_id IS 'Thread of the range (of the launch, if range is NULL). [-]';
COMMENT ON COLUMN v1.nvtx_kernels.kernel IS 'Kernel name as recorded.';
COMMENT ON COLUMN v1.nvtx_kernels.range_instances IS 'Number of instances of the range that contain this kernel; 0 if range is NULL. [count]';
COMMENT ON COLUMN v1.nvtx_kernels.calls IS 'Number of calls. A call inside two nested instances of the range counts twice. [count]';
COMMENT ON COLUMN v1.nvtx_kernels.total_ns IS 'Sum of durations. [ns]';
COMMENT ON COLUMN v1.nvtx_kernels.avg_ns IS 'Mean duration. [ns]';
COMMENT ON COLUMN v1.nvtx_kernels.median_ns IS 'Median duration, mean of the middle two. [ns]';
COMMENT ON COLUMN v1.nvtx_kernels.min_ns IS 'Shortest duration. [ns]';
COMMENT ON COLUMN v1.nvtx_kernels.max_ns IS 'Longest duration. [ns]';
COMMENT ON COLUMN v1.nvtx_kernels.stddev_ns IS 'Sample standard deviation of durations, 0 for one call. [ns]';
COMMENT ON COLUMN v1.nvtx_kernels.short_name IS 'Kernel name without return type, namespaces, template arguments and parameters, like nsys''s shortName.';
