-- The report nvtx_gpu_proj_sum of nsys stats, with its columns, units and rounding.
-- Grain: range × style, over instances that launch GPU work. The projection of an instance is from the first start to
-- the last end of that work, excluding graph replays recorded as a whole. GPU operations are counted by correlation id,
-- as in nsys stats: one launch is one operation, however many kernels it starts.
CREATE VIEW v1.nvtx_gpu_proj_sum AS
WITH instances AS (
    SELECT
        /* by r */
        r.capture_id AS clock_id,
        r.annotation_id,
        r.nsys_name,
        r.nsys_style,
        r.duration_ns AS range_ns,
        r.depth
    FROM v1._nsys_range AS r /* join r */
    WHERE true /* filter r */
),
members AS (
    SELECT DISTINCT m.capture_id, m.event_id, c.ancestor_id AS annotation_id
    FROM main.annotation_kernel AS m
    INNER JOIN v1._annotation_ancestor AS c ON c.capture_id = m.capture_id AND c.annotation_id = m.annotation_id
    WHERE m.rule = /* rule */ 'thread'
),
projections AS (
    SELECT
        m.capture_id,
        m.annotation_id,
        max(e.end_ns) - min(e.start_ns) AS duration_ns,
        count(DISTINCT coalesce(e.correlation_id, -e.event_id)) AS gpu_ops
    FROM v1._gpu_event AS e /* join e */
    INNER JOIN members AS m ON m.capture_id = e.capture_id AND m.event_id = e.event_id
    WHERE e.kind <> 'graph' /* filter e */
    GROUP BY m.capture_id, m.annotation_id
),
children AS (
    SELECT r.capture_id, r.parent_id, count(*) AS amount
    FROM projections AS p
    INNER JOIN v1._nsys_range AS r ON r.capture_id = p.capture_id AND r.annotation_id = p.annotation_id
    GROUP BY r.capture_id, r.parent_id
),
sums AS (
    SELECT
        /* by i */
        i.nsys_name,
        i.nsys_style,
        sum(i.range_ns) AS range_total,
        sum(p.gpu_ops) AS gpu_ops,
        sum(i.depth) AS depths,
        sum(c.amount) AS child_amount,
        v1._nsys_summary(count(*), p.duration_ns) AS stats
    FROM instances AS i
    INNER JOIN projections AS p ON p.capture_id = i.clock_id AND p.annotation_id = i.annotation_id
    LEFT JOIN children AS c ON c.capture_id = i.clock_id AND c.parent_id = i.annotation_id
    GROUP BY /* by i */ i.nsys_name, i.nsys_style
)
SELECT
    /* by */
    nsys_name AS "Range",
    nsys_style AS "Style",
    stats.total::BIGINT AS "Total Proj Time (ns)",
    range_total::BIGINT AS "Total Range Time (ns)",
    stats.instances AS "Range Instances",
    stats.mean AS "Proj Avg (ns)",
    stats.median AS "Proj Med (ns)",
    stats.least AS "Proj Min (ns)",
    stats.most AS "Proj Max (ns)",
    stats.stddev AS "Proj StdDev (ns)",
    gpu_ops::BIGINT AS "Total GPU Ops",
    v1._rounded_mean(gpu_ops, stats.instances) AS "Avg GPU Ops",
    v1._rounded_mean(depths, stats.instances) AS "Avg Range Lvl",
    v1._rounded_mean(coalesce(child_amount, 0), stats.instances) AS "Avg Num Child"
FROM sums;

COMMENT ON VIEW v1.nvtx_gpu_proj_sum IS 'GPU work launched inside ranges, from first start to last end, in the format of nsys stats. Like nsys, it uses rule thread: GPU work that other threads launched during a range (such as autograd''s backward) is not included; range_kernels and range_time include it under rule process. Grain: range × style.';
COMMENT ON COLUMN v1.nvtx_gpu_proj_sum."Range" IS 'Domain and text of the range, joined by a colon; only the text in the default domain.';
COMMENT ON COLUMN v1.nvtx_gpu_proj_sum."Style" IS 'PushPop, StartEnd, or User (record_function).';
COMMENT ON COLUMN v1.nvtx_gpu_proj_sum."Total Proj Time (ns)" IS 'Sum of projections. [ns]';
COMMENT ON COLUMN v1.nvtx_gpu_proj_sum."Total Range Time (ns)" IS 'Sum of durations of these instances on the CPU. [ns]';
COMMENT ON COLUMN v1.nvtx_gpu_proj_sum."Range Instances" IS 'Number of instances with GPU work. [count]';
COMMENT ON COLUMN v1.nvtx_gpu_proj_sum."Proj Avg (ns)" IS 'Mean projection, rounded to 0.1. [ns]';
COMMENT ON COLUMN v1.nvtx_gpu_proj_sum."Proj Med (ns)" IS 'Median projection, rounded to 0.1. [ns]';
COMMENT ON COLUMN v1.nvtx_gpu_proj_sum."Proj Min (ns)" IS 'Shortest projection. [ns]';
COMMENT ON COLUMN v1.nvtx_gpu_proj_sum."Proj Max (ns)" IS 'Longest projection. [ns]';
COMMENT ON COLUMN v1.nvtx_gpu_proj_sum."Proj StdDev (ns)" IS 'Sample standard deviation of projections, 0 for one, rounded to 0.1. [ns]';
COMMENT ON COLUMN v1.nvtx_gpu_proj_sum."Total GPU Ops" IS 'Launches of GPU work inside all instances, by correlation id. [count]';
COMMENT ON COLUMN v1.nvtx_gpu_proj_sum."Avg GPU Ops" IS 'The same per instance, rounded to 0.1. [count]';
COMMENT ON COLUMN v1.nvtx_gpu_proj_sum."Avg Range Lvl" IS 'Mean number of ranges that enclose an instance, rounded to 0.1. [count]';
COMMENT ON COLUMN v1.nvtx_gpu_proj_sum."Avg Num Child" IS 'Mean number of ranges with GPU work directly inside an instance, rounded to 0.1. [count]';
