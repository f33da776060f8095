-- How is GPU time divided on the average rank of a configuration?
-- Grain: configuration × part of the time. Each rank and device counts once, with the parts of gpu_timeline: arithmetic
-- and geometric mean, minimum and maximum. A geometric mean over a zero is 0; the number of zeros is given, and they
-- are not replaced by a small number.
CREATE VIEW v1.gpu_timeline_average AS
WITH parts AS (
    SELECT
        /* by u */
        s.set_id,
        s.source AS profiler,
        s.labels,
        s.cycle,
        unnest([
            {'place': 1, 'part': 'computation', 'ns': u.union_1_ns},
            {'place': 2, 'part': 'exposed_collective', 'ns': u.union_2_ns - u.union_1_ns},
            {'place': 3, 'part': 'exposed_copy', 'ns': u.union_3_ns - u.union_2_ns},
            {'place': 4, 'part': 'busy', 'ns': u.union_3_ns},
            {'place': 5, 'part': 'idle', 'ns': u.total_ns - u.union_3_ns},
            {'place': 6, 'part': 'total', 'ns': u.total_ns}
        ]) AS share,
        u.total_ns
    FROM v1._gpu_time AS u /* inline */
    LEFT JOIN v1._capture_set AS s ON s.capture_id = u.clock_id
)
SELECT
    /* by */
    /* grain */ any_value(profiler) AS source, any_value(labels) AS labels, any_value(cycle) AS cycle, /* end grain */
    share.place AS place,
    share.part AS part,
    count(*) AS ranks,
    count(*) FILTER (share.ns = 0) AS zero_ranks,
    sum(share.ns) / count(*) AS mean_ns,
    CASE WHEN zero_ranks > 0 THEN 0.0 ELSE exp(avg(ln(nullif(share.ns, 0)::DOUBLE) ORDER BY share.ns)) END
        AS geometric_mean_ns,
    min(share.ns)::BIGINT AS min_ns,
    max(share.ns)::BIGINT AS max_ns,
    100.0 * sum(share.ns) / nullif(sum(total_ns), 0) AS mean_percent
FROM parts
GROUP BY /* by */ /* grain */ set_id, /* end grain */ share.place, share.part;

COMMENT ON VIEW v1.gpu_timeline_average IS 'GPU timeline averaged over ranks. Grain: configuration × part.';
COMMENT ON COLUMN v1.gpu_timeline_average.source IS 'Profiler or format of the captures.';
COMMENT ON COLUMN v1.gpu_timeline_average.labels IS 'Configuration: labels of the captures, without the rank.';
COMMENT ON COLUMN v1.gpu_timeline_average.cycle IS 'Recording number, from 1 in time order, if the ranks recorded more than once; else NULL. [-]';
COMMENT ON COLUMN v1.gpu_timeline_average.place IS 'Position of the part in the order of gpu_timeline, from 1. [-]';
COMMENT ON COLUMN v1.gpu_timeline_average.part IS 'computation, exposed_collective, exposed_copy, busy (sum of these), idle, total (busy + idle).';
COMMENT ON COLUMN v1.gpu_timeline_average.ranks IS 'Number of ranks (devices of captures) in the average. [count]';
COMMENT ON COLUMN v1.gpu_timeline_average.zero_ranks IS 'Number of these with no such time. [count]';
COMMENT ON COLUMN v1.gpu_timeline_average.mean_ns IS 'Arithmetic mean. [ns]';
COMMENT ON COLUMN v1.gpu_timeline_average.geometric_mean_ns IS 'Geometric mean; 0 if a rank has no such time. [ns]';
COMMENT ON COLUMN v1.gpu_timeline_average.min_ns IS 'Minimum over ranks. [ns]';
COMMENT ON COLUMN v1.gpu_timeline_average.max_ns IS 'Maximum over ranks. [ns]';
COMMENT ON COLUMN v1.gpu_timeline_average.mean_percent IS 'Mean as a share of the mean total. [percent]';
