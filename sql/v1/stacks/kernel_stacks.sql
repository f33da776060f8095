-- Below which stack of Python frames was GPU time launched? For flame graphs.
-- Grain: capture × stage × stack × operator × kernel. The stack goes from the outermost frame to the innermost, with
-- semicolons between; backward, it is that of the forward operator that made the node of autograd. A semicolon or line
-- break in a name becomes a space.
CREATE VIEW v1.kernel_stacks AS
WITH RECURSIVE sites AS (
    SELECT
        /* by work */
        /* grain */ work.clock_id, /* end grain */
        work.clock_id AS home_id,
        work.stage, work.frame_id, work.op_name, work.name,
        count(*) AS calls,
        sum(work.duration_ns) AS total_ns
    FROM v1._gpu_site AS work /* inline */
    WHERE work.kind = 'kernel'
    GROUP BY ALL
),
callers AS (
    SELECT f.capture_id, f.frame_id AS leaf_id, f.parent_id, f.name, 0 AS height
    FROM main.frame AS f
    WHERE (f.capture_id, f.frame_id) IN (SELECT (s.home_id, s.frame_id) FROM sites AS s WHERE s.frame_id IS NOT NULL)
    UNION ALL
    SELECT c.capture_id, c.leaf_id, f.parent_id, f.name, c.height + 1 AS height
    FROM callers AS c
    INNER JOIN main.frame AS f ON f.capture_id = c.capture_id AND f.frame_id = c.parent_id
    WHERE c.height < 1000
),
stacks AS (
    SELECT
        c.capture_id, c.leaf_id,
        string_agg(regexp_replace(c.name, '[;\r\n]', ' ', 'g'), ';' ORDER BY c.height DESC) AS stack,
        count(*) AS depth
    FROM callers AS c
    GROUP BY c.capture_id, c.leaf_id
)
SELECT
    /* by s */
    /* grain */ s.clock_id AS capture_id, p.rank, p.labels, /* end grain */
    s.stage,
    t.stack,
    coalesce(t.depth, 0) AS depth,
    s.op_name,
    s.name AS kernel,
    sum(s.calls)::BIGINT AS calls,
    sum(s.total_ns)::BIGINT AS total_ns
FROM sites AS s
LEFT JOIN stacks AS t ON t.capture_id = s.home_id AND t.leaf_id = s.frame_id
/* grain */ LEFT JOIN main.capture AS p ON p.capture_id = s.clock_id /* end grain */
GROUP BY ALL;

COMMENT ON VIEW v1.kernel_stacks IS 'Kernel time by the stack of Python frames around the launch, for flame graphs. Grain: capture × stage × stack × operator × kernel.';
COMMENT ON COLUMN v1.kernel_stacks.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN v1.kernel_stacks.rank IS 'Rank of the capture; NULL if unknown. [-]';
COMMENT ON COLUMN v1.kernel_stacks.labels IS 'Labels of the capture: sweep, threads, channels and others.';
COMMENT ON COLUMN v1.kernel_stacks.stage IS 'forward (all that the program calls itself, the optimizer included, which module_time tells apart), backward, recomputation (forward again during backward).';
COMMENT ON COLUMN v1.kernel_stacks.stack IS 'Frames from the outermost to the innermost, with semicolons between; NULL if none is around the launch.';
COMMENT ON COLUMN v1.kernel_stacks.depth IS 'Number of frames. [count]';
COMMENT ON COLUMN v1.kernel_stacks.op_name IS 'Innermost framework operator that launched the kernel; NULL if none or not recorded.';
COMMENT ON COLUMN v1.kernel_stacks.kernel IS 'Kernel name as recorded.';
COMMENT ON COLUMN v1.kernel_stacks.calls IS 'Number of calls. [count]';
COMMENT ON COLUMN v1.kernel_stacks.total_ns IS 'Sum of durations. [ns]';
