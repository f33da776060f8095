-- Whose line launched the kernels, copies and memsets?
-- Grain: capture × line of the user's own code × stage × kernel × operator. The line is the nearest frame of the user's
-- code around the launch (main.frame_rule says what is not); backward, around the forward operator that made the node of
-- autograd. NULL where no frame of the user's is around it.
CREATE VIEW v1.kernel_source AS
WITH sums AS (
    SELECT
        /* by work */
        /* grain */ work.clock_id, /* end grain */
        f.name AS source,
        work.stage,
        work.kind,
        work.name,
        work.op_name,
        count(*) AS calls,
        sum(work.duration_ns) AS total_ns
    FROM v1._gpu_site AS work /* inline */
    LEFT JOIN v1._own_frame AS w ON w.capture_id = work.clock_id AND w.frame_id = work.frame_id
    LEFT JOIN main.frame AS f ON f.capture_id = w.capture_id AND f.frame_id = w.own_id
    GROUP BY ALL
)
SELECT
    /* by s */
    /* grain */ s.clock_id AS capture_id, c.rank, c.labels, /* end grain */
    s.source,
    s.stage,
    s.name AS kernel,
    CASE s.kind WHEN 'kernel' THEN n.class ELSE 'copy' END AS class,
    s.op_name,
    s.calls,
    s.total_ns::BIGINT AS total_ns,
    100.0 * s.total_ns / nullif(sum(s.total_ns) OVER (PARTITION BY /* by s */ /* grain */ s.clock_id, /* end grain */ 1), 0)
        AS share_percent,
    (sum(s.calls) OVER site)::BIGINT AS site_calls,
    (sum(s.total_ns) OVER site)::BIGINT AS site_ns,
    100.0 * s.total_ns / nullif(sum(s.total_ns) OVER site, 0) AS site_share_percent
FROM sums AS s
LEFT JOIN v1._kernel_class AS n ON n.name = s.name AND s.kind = 'kernel'
/* grain */ LEFT JOIN main.capture AS c ON c.capture_id = s.clock_id /* end grain */
WINDOW site AS (PARTITION BY /* by s */ /* grain */ s.clock_id, /* end grain */ s.source, s.stage);

COMMENT ON VIEW v1.kernel_source IS 'Which line of the user''s own code launched the kernels, copies and memsets. Grain: capture × line × stage × kernel × operator.';
COMMENT ON COLUMN v1.kernel_source.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN v1.kernel_source.rank IS 'Rank of the capture; NULL if unknown. [-]';
COMMENT ON COLUMN v1.kernel_source.labels IS 'Labels of the capture: sweep, threads, channels and others.';
COMMENT ON COLUMN v1.kernel_source.source IS 'Nearest function of the user''s own code, file(first line): function; NULL if there is none.';
COMMENT ON COLUMN v1.kernel_source.stage IS 'forward (all that the program calls itself, the optimizer included, which module_time tells apart), backward, recomputation (forward again during backward).';
COMMENT ON COLUMN v1.kernel_source.kernel IS 'Name of the kernel, copy or memset as recorded.';
COMMENT ON COLUMN v1.kernel_source.class IS 'Class of the kernel; copy for copies and memsets.';
COMMENT ON COLUMN v1.kernel_source.op_name IS 'Innermost framework operator that launched it; NULL if none or not recorded.';
COMMENT ON COLUMN v1.kernel_source.calls IS 'Number of calls. [count]';
COMMENT ON COLUMN v1.kernel_source.total_ns IS 'Sum of durations. [ns]';
COMMENT ON COLUMN v1.kernel_source.share_percent IS 'Share of all GPU time. [percent]';
COMMENT ON COLUMN v1.kernel_source.site_calls IS 'Calls of this line and stage. [count]';
COMMENT ON COLUMN v1.kernel_source.site_ns IS 'Sum of their durations. [ns]';
COMMENT ON COLUMN v1.kernel_source.site_share_percent IS 'Share of this kernel and operator in them. [percent]';
