-- The report nvtx_kern_sum of nsys stats, with its columns, units and rounding.
-- Grain: range × launching thread × kernel name. A kernel counts in every range that contains its launch; kernels
-- outside all ranges have range NULL, in files with ranges. A kernel inside two nested ranges of one name is one
-- instance, but its duration counts once for each of them in all other columns. v1.nvtx_kernels has the same numbers
-- for every rule.
CREATE VIEW v1.nvtx_kern_sum AS
WITH ranges AS (
    SELECT
        r.capture_id, r.annotation_id, r.nsys_name, r.nsys_style,
        dense_rank() OVER (ORDER BY r.nsys_name, r.nsys_style) AS range_no,
        row_number() OVER (ORDER BY r.capture_id, r.annotation_id) AS instance_no
    FROM v1._nsys_range AS r
),
annotated AS (
    SELECT DISTINCT c.source, c.path
    FROM main.capture AS c
    INNER JOIN main.annotation AS a ON a.capture_id = c.capture_id
),
kernel_names AS (
    SELECT n.name, row_number() OVER (ORDER BY n.name) AS kernel_no
    FROM v1._kernel_class AS n
),
members AS (
    SELECT DISTINCT m.capture_id, m.event_id, r.range_no, r.instance_no
    FROM main.annotation_kernel AS m
    INNER JOIN v1._annotation_ancestor AS c ON c.capture_id = m.capture_id AND c.annotation_id = m.annotation_id
    INNER JOIN ranges AS r ON r.capture_id = c.ancestor_capture_id AND r.annotation_id = c.ancestor_id
    WHERE m.rule = /* rule */ 'thread'
),
sums AS (
    SELECT
        /* by e */
        m.range_no,
        l.process_id,
        l.thread_id,
        n.kernel_no,
        count(DISTINCT m.instance_no) AS range_instances,
        count(DISTINCT e.capture_id * 18446744073709551616 + e.event_id) AS instances,
        v1._nsys_summary(count(*), e.duration_ns) AS stats
    FROM v1._gpu_event AS e /* join e */
    INNER JOIN kernel_names AS n ON n.name = e.name
    INNER JOIN main.capture AS c ON c.capture_id = e.capture_id
    LEFT JOIN main.launch AS l ON l.capture_id = e.capture_id AND l.launch_id = e.launch_id
    LEFT JOIN members AS m ON m.capture_id = e.capture_id AND m.event_id = e.event_id
    WHERE
        e.kind = 'kernel'
        AND EXISTS (SELECT 1 FROM annotated AS a WHERE a.source = c.source AND a.path IS NOT DISTINCT FROM c.path) /* filter e */
    GROUP BY /* by e */ m.range_no, l.process_id, l.thread_id, n.kernel_no
),
range_texts AS (
    SELECT DISTINCT range_no, nsys_name, nsys_style
    FROM ranges
)
SELECT
    /* by */
    t.nsys_name AS "NVTX Range",
    t.nsys_style AS "Style",
    s.process_id AS "PID",
    s.thread_id AS "TID",
    s.range_instances AS "NVTX Inst",
    s.instances AS "Kern Inst",
    stats.total::BIGINT AS "Total Time (ns)",
    stats.mean AS "Avg (ns)",
    stats.median AS "Med (ns)",
    stats.least AS "Min (ns)",
    stats.most AS "Max (ns)",
    stats.stddev AS "StdDev (ns)",
    n.name AS "Kernel Name"
FROM sums AS s
INNER JOIN kernel_names AS n ON n.kernel_no = s.kernel_no
LEFT JOIN range_texts AS t ON t.range_no = s.range_no;

COMMENT ON VIEW v1.nvtx_kern_sum IS 'Kernels of each range, in the format of nsys stats. Like nsys, it uses rule thread: GPU work that other threads launched during a range (such as autograd''s backward) is not included; range_kernels and range_time include it under rule process. Grain: range × launching thread × kernel name.';
COMMENT ON COLUMN v1.nvtx_kern_sum."NVTX Range" IS 'Domain and text of the range; NULL for kernels launched outside all ranges.';
COMMENT ON COLUMN v1.nvtx_kern_sum."Style" IS 'PushPop, StartEnd, or User (record_function).';
COMMENT ON COLUMN v1.nvtx_kern_sum."PID" IS 'Process that made the launch. [-]';
COMMENT ON COLUMN v1.nvtx_kern_sum."TID" IS 'Thread that made the launch. [-]';
COMMENT ON COLUMN v1.nvtx_kern_sum."NVTX Inst" IS 'Instances of the range that contain this kernel; 0 if the range is NULL. [count]';
COMMENT ON COLUMN v1.nvtx_kern_sum."Kern Inst" IS 'Number of calls; a call inside two nested ranges of this name counts once. [count]';
COMMENT ON COLUMN v1.nvtx_kern_sum."Total Time (ns)" IS 'Sum of durations; a kernel counts once for each enclosing range of this name. [ns]';
COMMENT ON COLUMN v1.nvtx_kern_sum."Avg (ns)" IS 'Mean of these durations, rounded to 0.1. [ns]';
COMMENT ON COLUMN v1.nvtx_kern_sum."Med (ns)" IS 'Median duration, mean of the middle two, rounded to 0.1. [ns]';
COMMENT ON COLUMN v1.nvtx_kern_sum."Min (ns)" IS 'Shortest duration. [ns]';
COMMENT ON COLUMN v1.nvtx_kern_sum."Max (ns)" IS 'Longest duration. [ns]';
COMMENT ON COLUMN v1.nvtx_kern_sum."StdDev (ns)" IS 'Sample standard deviation of durations, 0 for one, rounded to 0.1. [ns]';
COMMENT ON COLUMN v1.nvtx_kern_sum."Kernel Name" IS 'Kernel name as recorded.';
