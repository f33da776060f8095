-- Which module does the GPU time belong to, forward and backward?
-- Grain: capture × module path × pass. self_ns is of kernels whose innermost module it is, total_ns also of those in
-- modules inside it: self_ns adds up to all kernel time, with the row "outside modules" for the rest. Calls are those of
-- the module in the capture: a backward pass has no calls of its own. See v1._gpu_site for who belongs to whom.
CREATE VIEW v1.module_time AS
WITH sites AS (
    SELECT
        /* by work */
        /* grain */ work.clock_id, /* end grain */
        coalesce(work.module_path, 'outside modules') AS own_path,
        CASE
            WHEN work.module_path IS NOT NULL THEN work.stage
            WHEN work.is_optimizer THEN 'optimizer'
            ELSE 'outside'
        END AS pass,
        count(*) AS kernels,
        sum(work.duration_ns) AS self_ns
    FROM v1._gpu_site AS work /* inline */
    WHERE work.kind = 'kernel'
    GROUP BY ALL
),
levels AS (
    SELECT
        /* by s */
        /* grain */ s.clock_id, /* end grain */
        s.own_path, s.pass, s.kernels, s.self_ns,
        string_split(s.own_path, '.') AS parts,
        unnest(range(1, len(string_split(s.own_path, '.')) + 1)) AS depth
    FROM sites AS s
),
sums AS (
    SELECT
        /* by v */
        /* grain */ v.clock_id, /* end grain */
        array_to_string(v.parts[1:v.depth], '.') AS path,
        v.depth - 1 AS depth,
        v.pass,
        sum(v.kernels) AS kernels,
        coalesce(sum(v.self_ns) FILTER (v.depth = len(v.parts)), 0) AS self_ns,
        sum(v.self_ns) AS total_ns
    FROM levels AS v
    GROUP BY ALL
),
frames AS (
    SELECT f.capture_id, f.module_path, count(*) AS calls
    FROM main.frame AS f
    WHERE f.kind = 'module'
    GROUP BY f.capture_id, f.module_path
)
SELECT
    /* by t */
    /* grain */ t.clock_id AS capture_id, c.rank, c.labels, /* end grain */
    t.path,
    t.depth,
    t.pass,
    /* grain */ f.calls, /* end grain */
    t.kernels::BIGINT AS kernels,
    t.self_ns::BIGINT AS self_ns,
    t.total_ns::BIGINT AS total_ns,
    100.0 * t.total_ns / nullif(sum(t.self_ns) OVER (PARTITION BY /* by t */ /* grain */ t.clock_id, /* end grain */ 1), 0)
        AS share_percent
    /* grain */, n.name AS recorded_name /* end grain */
FROM sums AS t
/* grain */ LEFT JOIN main.capture AS c ON c.capture_id = t.clock_id
LEFT JOIN v1._module_name AS n ON n.capture_id = t.clock_id AND n.module_path = t.path
LEFT JOIN frames AS f ON f.capture_id = t.clock_id AND f.module_path = t.path /* end grain */;

COMMENT ON VIEW v1.module_time IS 'GPU time by nn.Module, forward and backward. Grain: capture × module path × pass.';
COMMENT ON COLUMN v1.module_time.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN v1.module_time.rank IS 'Rank of the capture; NULL if unknown. [-]';
COMMENT ON COLUMN v1.module_time.labels IS 'Labels of the capture: sweep, threads, channels and others.';
COMMENT ON COLUMN v1.module_time.path IS 'Modules from the outermost to this one, such as GPT_0.Block_3.Linear_12; the number is PyTorch''s count of the modules of a class in a process, names of attributes are not recorded (but see recorded_name). "outside modules" for the rest.';
COMMENT ON COLUMN v1.module_time.depth IS 'Number of modules around it. [count]';
COMMENT ON COLUMN v1.module_time.pass IS 'forward, backward, recomputation (forward again during backward), optimizer, outside.';
COMMENT ON COLUMN v1.module_time.calls IS 'Calls of the module in the capture, also those made again during backward; NULL outside of modules. [count]';
COMMENT ON COLUMN v1.module_time.kernels IS 'Kernels of the module and of those inside it. [count]';
COMMENT ON COLUMN v1.module_time.self_ns IS 'Sum of durations of kernels whose innermost module it is. [ns]';
COMMENT ON COLUMN v1.module_time.total_ns IS 'Sum of durations of these and of kernels in modules inside it. [ns]';
COMMENT ON COLUMN v1.module_time.share_percent IS 'Share of total_ns in all kernel time. [percent]';
COMMENT ON COLUMN v1.module_time.recorded_name IS 'Name of the module in the model, such as layers.3, where FSDP recorded one in a range; NULL otherwise.';
