-- How long do ranges take on the CPU, and how long is the GPU work that they launch? Like nsys stats nvtx_sum joined
-- with nvtx_gpu_proj_sum.
-- Grain: rule × domain × name × style. The projection of an instance is from the first start to the last end of the GPU
-- events that the rule assigns to it, including inner ranges; instances without GPU work have none. Marks and ranges
-- still open have no duration. Sums are integers, exact for every row order (see top_kernels).
CREATE VIEW v1.nvtx_ranges AS
WITH instances AS (
    SELECT
        /* by r */
        r.capture_id AS clock_id,
        r.annotation_id,
        u.rule,
        u.has_gpu,
        r.name,
        r.domain,
        r.style,
        r.duration_ns
    FROM v1._range AS r /* join r */
    INNER JOIN v1._capture_rule AS u ON u.capture_id = r.capture_id
    WHERE true /* filter r */
),
-- Events in several innermost ranges (crossing ranges, or ranges of several threads).
shared AS (
    SELECT m.rule, m.capture_id, m.event_id
    FROM main.annotation_kernel AS m
    GROUP BY m.rule, m.capture_id, m.event_id
    HAVING count(*) > 1
),
innermost AS (
    SELECT
        m.rule,
        m.capture_id,
        m.annotation_id,
        s.event_id AS shared_event_id,
        count(*) AS gpu_ops,
        min(e.start_ns) AS start_ns,
        max(e.end_ns) AS end_ns
    FROM v1._gpu_event AS e /* join e */
    INNER JOIN main.annotation_kernel AS m ON m.capture_id = e.capture_id AND m.event_id = e.event_id
    LEFT JOIN shared AS s ON s.capture_id = m.capture_id AND s.event_id = m.event_id AND s.rule = m.rule
    WHERE true /* filter e */
    GROUP BY m.rule, m.capture_id, m.annotation_id, s.event_id
),
-- A shared event reaches a common outer range on several paths and counts once.
enclosing AS (
    SELECT
        i.rule,
        i.capture_id,
        c.ancestor_id AS annotation_id,
        CASE WHEN i.shared_event_id IS NULL THEN sum(i.gpu_ops) ELSE 1 END AS gpu_ops,
        min(i.start_ns) AS start_ns,
        max(i.end_ns) AS end_ns
    FROM innermost AS i
    INNER JOIN v1._annotation_ancestor AS c ON c.capture_id = i.capture_id AND c.annotation_id = i.annotation_id
    GROUP BY i.rule, i.capture_id, c.ancestor_id, i.shared_event_id
),
projections AS (
    SELECT
        rule,
        capture_id,
        annotation_id,
        sum(gpu_ops) AS gpu_ops,
        max(end_ns) - min(start_ns) AS projected_ns
    FROM enclosing
    GROUP BY rule, capture_id, annotation_id
),
sums AS (
    SELECT
        /* by */
        i.rule,
        i.domain,
        i.name,
        i.style,
        count(*) AS instances,
        sum(i.duration_ns) AS range_total_ns,
        count(p.projected_ns) AS projected_instances,
        sum(p.projected_ns) AS projected_total_ns,
        median(p.projected_ns) AS projected_median_ns,
        min(p.projected_ns) AS projected_min_ns,
        max(p.projected_ns) AS projected_max_ns,
        sum(p.projected_ns::HUGEINT * p.projected_ns) AS squares,
        CASE WHEN bool_or(i.has_gpu) THEN coalesce(sum(p.gpu_ops), 0) END AS gpu_ops
    FROM instances AS i
    LEFT JOIN projections AS p
        ON p.capture_id = i.clock_id AND p.annotation_id = i.annotation_id AND p.rule = i.rule
    GROUP BY /* by */ i.rule, i.domain, i.name, i.style
)
SELECT
    /* by */
    rule,
    name,
    domain,
    style,
    instances,
    range_total_ns::BIGINT AS range_total_ns,
    projected_instances,
    projected_total_ns::BIGINT AS projected_total_ns,
    projected_total_ns / nullif(projected_instances, 0) AS projected_avg_ns,
    projected_median_ns,
    projected_min_ns,
    projected_max_ns,
    v1._sample_stddev(projected_instances, projected_total_ns, squares) AS projected_stddev_ns,
    gpu_ops::BIGINT AS gpu_ops
FROM sums;

COMMENT ON VIEW v1.nvtx_ranges IS 'Time of ranges on the CPU and of the GPU work launched inside them, like nsys stats nvtx_sum and nvtx_gpu_proj_sum. There are rows for each rule of range membership, which do not add up: select one (WHERE rule = ''process''). Grain: rule × domain × name × style.';
COMMENT ON COLUMN v1.nvtx_ranges.rule IS 'How GPU events are assigned to ranges: thread (launched inside, on the thread of the range), process (launched inside, on any thread, such as autograd''s), time (started inside; used if launches were not recorded). There is a row for each rule: select one. The report uses thread, like nsys.';
COMMENT ON COLUMN v1.nvtx_ranges.name IS 'Text of the range or mark.';
COMMENT ON COLUMN v1.nvtx_ranges.domain IS 'NVTX domain; NULL for the default domain.';
COMMENT ON COLUMN v1.nvtx_ranges.style IS 'push_pop, start_end, mark, user (record_function), python_function.';
COMMENT ON COLUMN v1.nvtx_ranges.instances IS 'Number of instances, with or without GPU work. [count]';
COMMENT ON COLUMN v1.nvtx_ranges.range_total_ns IS 'Sum of durations on the CPU; NULL for marks and for ranges still open. [ns]';
COMMENT ON COLUMN v1.nvtx_ranges.projected_instances IS 'Number of instances with GPU work. The columns that follow cover only these. [count]';
COMMENT ON COLUMN v1.nvtx_ranges.projected_total_ns IS 'Sum of projections (first start to last end on the GPU); NULL without GPU work. [ns]';
COMMENT ON COLUMN v1.nvtx_ranges.projected_avg_ns IS 'Mean projection. [ns]';
COMMENT ON COLUMN v1.nvtx_ranges.projected_median_ns IS 'Median projection, mean of the middle two. [ns]';
COMMENT ON COLUMN v1.nvtx_ranges.projected_min_ns IS 'Shortest projection. [ns]';
COMMENT ON COLUMN v1.nvtx_ranges.projected_max_ns IS 'Longest projection. [ns]';
COMMENT ON COLUMN v1.nvtx_ranges.projected_stddev_ns IS 'Sample standard deviation of projections, 0 for one. [ns]';
COMMENT ON COLUMN v1.nvtx_ranges.gpu_ops IS 'GPU events of any kind inside all instances; NULL if no GPU activity was captured. [count]';
