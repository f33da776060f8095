-- Which kernels does a range consist of, how often does each run per instance, and what share of the time does it take?
-- Grain: rule × range × kernel name. Warm-up is excluded (see v1._range_instance), so that calls per instance are whole
-- numbers. All instances of the range count, with or without the kernel. Texts are numbered first, because every call
-- is repeated for every enclosing range.
CREATE VIEW v1.range_kernels AS
WITH instances AS (
    SELECT
        /* by r */
        r.capture_id AS clock_id,
        r.annotation_id,
        r.name, r.domain, r.style,
        dense_rank() OVER (ORDER BY r.name, r.domain, r.style) AS range_no
    FROM v1._range_instance AS r /* join r */
    WHERE NOT r.is_warmup /* filter r */
),
totals AS (
    SELECT
        /* by */
        range_no,
        any_value(name) AS name,
        any_value(domain) AS domain,
        any_value(style) AS style,
        count(*) AS instances
    FROM instances
    GROUP BY /* by */ range_no
),
kernel_names AS (
    SELECT n.name, n.short_name, row_number() OVER (ORDER BY n.name) AS kernel_no
    FROM v1._kernel_class AS n
),
sums AS (
    SELECT
        /* by i */
        m.rule,
        i.range_no,
        n.kernel_no,
        e.class,
        count(*) AS calls,
        sum(e.duration_ns) AS total_ns,
        median(e.duration_ns) AS median_ns,
        min(e.duration_ns) AS min_ns,
        max(e.duration_ns) AS max_ns
    FROM v1._gpu_event AS e /* join e */
    INNER JOIN kernel_names AS n ON n.name = e.name
    INNER JOIN v1._range_member AS m ON m.capture_id = e.capture_id AND m.event_id = e.event_id
    INNER JOIN instances AS i ON i.clock_id = m.capture_id AND i.annotation_id = m.annotation_id
    WHERE e.kind = 'kernel' /* filter e */
    GROUP BY /* by i */ m.rule, i.range_no, n.kernel_no, e.class
)
SELECT
    /* by s */
    s.rule,
    t.name AS range,
    t.domain,
    t.style,
    n.name AS kernel,
    s.class,
    t.instances,
    s.calls,
    s.calls / t.instances AS calls_per_instance,
    s.total_ns::BIGINT AS total_ns,
    s.total_ns / t.instances AS instance_avg_ns,
    100.0 * s.total_ns / nullif(sum(s.total_ns) OVER (PARTITION BY /* by s */ s.rule, s.range_no), 0) AS share_percent,
    s.total_ns / s.calls AS avg_ns,
    s.median_ns,
    s.min_ns,
    s.max_ns,
    n.short_name
FROM sums AS s
INNER JOIN kernel_names AS n ON n.kernel_no = s.kernel_no
INNER JOIN totals AS t ON t.range_no = s.range_no /* using s t */;

COMMENT ON VIEW v1.range_kernels IS 'Kernels of each range with calls and time per instance, excluding warm-up. There are rows for each rule of range membership, which do not add up: select one (WHERE rule = ''process''). Grain: rule × range × kernel name.';
COMMENT ON COLUMN v1.range_kernels.rule IS 'How GPU events are assigned to ranges: thread (launched inside, on the thread of the range), process (launched inside, on any thread, such as autograd''s), time (started inside; used if launches were not recorded). There is a row for each rule: select one. The report uses process.';
COMMENT ON COLUMN v1.range_kernels.range IS 'Text of the range.';
COMMENT ON COLUMN v1.range_kernels.domain IS 'NVTX domain; NULL for the default domain.';
COMMENT ON COLUMN v1.range_kernels.style IS 'push_pop, start_end, user (record_function).';
COMMENT ON COLUMN v1.range_kernels.kernel IS 'Kernel name as recorded.';
COMMENT ON COLUMN v1.range_kernels.class IS 'Class of the kernel: matmul, collective, elementwise …';
COMMENT ON COLUMN v1.range_kernels.instances IS 'Number of instances of the range, including those without this kernel, excluding warm-up. [count]';
COMMENT ON COLUMN v1.range_kernels.calls IS 'Number of calls in all these instances. [count]';
COMMENT ON COLUMN v1.range_kernels.calls_per_instance IS 'Calls per instance. [count]';
COMMENT ON COLUMN v1.range_kernels.total_ns IS 'Sum of durations. [ns]';
COMMENT ON COLUMN v1.range_kernels.instance_avg_ns IS 'Sum of durations per instance. [ns]';
COMMENT ON COLUMN v1.range_kernels.share_percent IS 'Share of the total time of all kernels of the range in the answer. [percent]';
COMMENT ON COLUMN v1.range_kernels.avg_ns IS 'Mean duration. [ns]';
COMMENT ON COLUMN v1.range_kernels.median_ns IS 'Median duration, mean of the middle two. [ns]';
COMMENT ON COLUMN v1.range_kernels.min_ns IS 'Shortest duration. [ns]';
COMMENT ON COLUMN v1.range_kernels.max_ns IS 'Longest duration. [ns]';
COMMENT ON COLUMN v1.range_kernels.short_name IS 'Kernel name without return type, namespaces, template arguments and parameters, like nsys''s shortName.';
