-- How does the GPU's time divide on the average rank of a configuration?
-- Grain: configuration × part of the time. Each rank and device counts once, with the parts of gpu_timeline (whose steps
-- are repeated here, so that filters reach the events): arithmetic and geometric mean, smallest and largest. A geometric
-- mean with a zero among its values is 0; how many there are is said beside it, and no small number is put for them.
CREATE VIEW v1.gpu_timeline_average AS
WITH events AS (
    SELECT
        /* by e */
        e.capture_id AS clock_id,
        e.device_id AS gpu_id,
        e.start_ns,
        e.end_ns,
        CASE WHEN e.kind IN ('memcpy', 'memset') THEN 3 WHEN e.class = 'collective' THEN 2 ELSE 1 END AS layer
    FROM v1._gpu_event AS e /* join e */
    WHERE true /* filter e */
),
-- The furthest end so far of layer 1, of 1 and 2, and of all three.
reaches AS (
    SELECT
        /* by */
        clock_id,
        gpu_id,
        start_ns,
        end_ns,
        layer,
        coalesce(max(end_ns) FILTER (layer = 1) OVER earlier, start_ns) AS reach_1_ns,
        coalesce(max(end_ns) FILTER (layer <= 2) OVER earlier, start_ns) AS reach_2_ns,
        coalesce(max(end_ns) OVER earlier, start_ns) AS reach_3_ns
    FROM events
    WINDOW earlier AS (
        PARTITION BY /* by */ clock_id, gpu_id
        ORDER BY start_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    )
),
unions AS (
    SELECT
        /* by */
        clock_id,
        gpu_id,
        coalesce(sum(greatest(end_ns, reach_1_ns) - greatest(start_ns, reach_1_ns)) FILTER (layer = 1), 0) AS union_1_ns,
        coalesce(sum(greatest(end_ns, reach_2_ns) - greatest(start_ns, reach_2_ns)) FILTER (layer <= 2), 0) AS union_2_ns,
        sum(greatest(end_ns, reach_3_ns) - greatest(start_ns, reach_3_ns)) AS union_3_ns,
        max(end_ns) - min(start_ns) AS total_ns
    FROM reaches
    GROUP BY /* by */ clock_id, gpu_id
),
parts AS (
    SELECT
        /* by u */
        s.set_id,
        s.source AS profiler,
        s.labels,
        unnest([
            (1, 'computation', u.union_1_ns), (2, 'exposed_collective', u.union_2_ns - u.union_1_ns),
            (3, 'exposed_copy', u.union_3_ns - u.union_2_ns), (4, 'busy', u.union_3_ns),
            (5, 'idle', u.total_ns - u.union_3_ns), (6, 'total', u.total_ns)
        ]) AS share,
        u.total_ns
    FROM unions AS u
    LEFT JOIN v1._capture_set AS s ON s.capture_id = u.clock_id
)
SELECT
    /* by */
    /* grain */ any_value(profiler) AS source, any_value(labels) AS labels, /* end grain */
    share[1] AS place,
    share[2] AS part,
    count(*) AS ranks,
    count(*) FILTER (share[3] = 0) AS zero_ranks,
    sum(share[3]) / count(*) AS mean_ns,
    CASE WHEN zero_ranks > 0 THEN 0.0 ELSE exp(avg(ln(nullif(share[3], 0)::DOUBLE) ORDER BY share[3])) END
        AS geometric_mean_ns,
    min(share[3])::BIGINT AS min_ns,
    max(share[3])::BIGINT AS max_ns,
    100.0 * sum(share[3]) / nullif(sum(total_ns), 0) AS mean_percent
FROM parts
GROUP BY /* by */ /* grain */ set_id, /* end grain */ share[1], share[2];

COMMENT ON VIEW v1.gpu_timeline_average IS 'Parts of the GPU time averaged over ranks. Grain: configuration × part.';
COMMENT ON COLUMN v1.gpu_timeline_average.source IS 'Which ingester read the captures.';
COMMENT ON COLUMN v1.gpu_timeline_average.labels IS 'Configuration: labels of the captures less the rank.';
COMMENT ON COLUMN v1.gpu_timeline_average.place IS 'Place of the part in the order of gpu_timeline, from 1.';
COMMENT ON COLUMN v1.gpu_timeline_average.part IS 'computation, exposed_collective, exposed_copy, busy (their sum), idle, total (busy and idle).';
COMMENT ON COLUMN v1.gpu_timeline_average.ranks IS 'Number of ranks (devices of captures) averaged over.';
COMMENT ON COLUMN v1.gpu_timeline_average.zero_ranks IS 'How many of them have none of it.';
COMMENT ON COLUMN v1.gpu_timeline_average.mean_ns IS 'Arithmetic mean, in ns.';
COMMENT ON COLUMN v1.gpu_timeline_average.geometric_mean_ns IS 'Geometric mean; 0 where a rank has none, in ns.';
COMMENT ON COLUMN v1.gpu_timeline_average.min_ns IS 'Smallest of the ranks, in ns.';
COMMENT ON COLUMN v1.gpu_timeline_average.max_ns IS 'Largest of the ranks, in ns.';
COMMENT ON COLUMN v1.gpu_timeline_average.mean_percent IS 'Share of the mean in the mean total, in percent.';
