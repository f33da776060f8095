-- The report gpu_timeline of TraceLens, with its rows, columns and units.
-- Grain: capture × kind of time, over all devices of the capture. Communication is defined by name as in TraceLens
-- (nccl, rccl, cross_device_reduce); memsets count as computation, ROCm's copy kernels as copies. Computation + exposed
-- communication + exposed copies = busy, and busy + idle = total. v1.gpu_timeline recognises other collectives.
-- Where a report chooses events, other work is neither idle nor part of the total (hook part, see v1._gpu_time).
CREATE VIEW v1.tracelens_gpu_timeline AS
-- By distinct name: matching patterns against each of millions of events takes most of the time.
WITH named AS (
    SELECT
        d.name,
        d.name LIKE '%\_\_amd\_rocclr\_copy%' ESCAPE '\' AS copies,
        regexp_matches(d.name, '(?i)rccl|nccl|cross_device_reduce') AS communicates
    FROM (SELECT e.name FROM main.kernel_event AS e GROUP BY e.name HAVING count(*) > 0) AS d
),
events AS (
    SELECT
        /* by e */
        e.capture_id AS clock_id,
        e.start_ns,
        e.end_ns,
        /* whole */ NULL::BIGINT /* part e.capture_idle_before_ns */ AS idle_before_ns,
        CASE
            WHEN e.kind = 'memcpy' OR d.copies THEN 3
            WHEN e.kind <> 'memset' AND d.communicates THEN 2
            ELSE 1
        END AS layer
    FROM v1._gpu_event AS e /* join e */
    LEFT JOIN named AS d ON d.name = e.name
    WHERE true /* filter e */
),
-- The latest end so far of layer 1, of 1 and 2, of all three, of 2 alone and of 3 alone.
reaches AS (
    SELECT
        /* by */
        clock_id,
        start_ns,
        end_ns,
        layer,
        idle_before_ns,
        coalesce(max(end_ns) FILTER (layer = 1) OVER earlier, start_ns) AS reach_1_ns,
        coalesce(max(end_ns) FILTER (layer <= 2) OVER earlier, start_ns) AS reach_2_ns,
        coalesce(max(end_ns) OVER earlier, start_ns) AS reach_3_ns,
        coalesce(max(end_ns) FILTER (layer = 2) OVER earlier, start_ns) AS comm_reach_ns,
        coalesce(max(end_ns) FILTER (layer = 3) OVER earlier, start_ns) AS copy_reach_ns
    FROM events
    WINDOW earlier AS (
        PARTITION BY /* by */ clock_id
        ORDER BY start_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    )
),
unions AS (
    SELECT
        /* by */
        clock_id,
        coalesce(sum(greatest(end_ns, reach_1_ns) - greatest(start_ns, reach_1_ns)) FILTER (layer = 1), 0) AS union_1_ns,
        coalesce(sum(greatest(end_ns, reach_2_ns) - greatest(start_ns, reach_2_ns)) FILTER (layer <= 2), 0) AS union_2_ns,
        sum(greatest(end_ns, reach_3_ns) - greatest(start_ns, reach_3_ns)) AS union_3_ns,
        coalesce(sum(greatest(end_ns, comm_reach_ns) - greatest(start_ns, comm_reach_ns)) FILTER (layer = 2), 0) AS comm_ns,
        coalesce(sum(greatest(end_ns, copy_reach_ns) - greatest(start_ns, copy_reach_ns)) FILTER (layer = 3), 0) AS copy_ns,
        /* whole */ max(end_ns) - min(start_ns) /* part sum(greatest(end_ns, reach_3_ns) - greatest(start_ns, reach_3_ns)) + sum(idle_before_ns) - arg_min(idle_before_ns, (start_ns, -idle_before_ns)) */ AS total_ns
    FROM reaches
    GROUP BY /* by */ clock_id
),
parts AS (
    SELECT
        /* by */
        clock_id,
        total_ns,
        unnest([
            {'kind': 'computation_time', 'ns': union_1_ns},
            {'kind': 'exposed_comm_time', 'ns': union_2_ns - union_1_ns},
            {'kind': 'exposed_memcpy_time', 'ns': union_3_ns - union_2_ns},
            {'kind': 'busy_time', 'ns': union_3_ns},
            {'kind': 'idle_time', 'ns': total_ns - union_3_ns},
            {'kind': 'total_time', 'ns': total_ns},
            {'kind': 'total_comm_time', 'ns': comm_ns},
            {'kind': 'total_memcpy_time', 'ns': copy_ns}
        ]) AS share
    FROM unions
)
SELECT
    /* by */
    /* grain */
    clock_id AS capture_id, any_value(c.labels) AS labels, any_value(c.rank) AS rank,
    /* end grain */
    share.kind AS "type",
    sum(share.ns) / 1e6 AS "time ms",
    100.0 * sum(share.ns) / nullif(sum(total_ns), 0) AS "percent"
FROM parts
/* grain */ LEFT JOIN main.capture AS c ON c.capture_id = clock_id /* end grain */
GROUP BY ALL;

COMMENT ON VIEW v1.tracelens_gpu_timeline IS 'GPU time of each rank by kind, like TraceLens''s gpu_timeline. Grain: capture × kind of time.';
COMMENT ON COLUMN v1.tracelens_gpu_timeline.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN v1.tracelens_gpu_timeline.labels IS 'Labels of the capture: sweep, threads, channels and others.';
COMMENT ON COLUMN v1.tracelens_gpu_timeline.rank IS 'Rank of the capture; NULL if unknown. [-]';
COMMENT ON COLUMN v1.tracelens_gpu_timeline."type" IS 'computation_time, exposed_comm_time, exposed_memcpy_time, busy_time (sum of these), idle_time, total_time (busy + idle), total_comm_time and total_memcpy_time (both hidden and exposed).';
COMMENT ON COLUMN v1.tracelens_gpu_timeline."time ms" IS 'Time (with --by: summed over captures). Where a report chooses events (--class, --range, --skip-warmup), other work is neither idle nor part of the total. [ms]';
COMMENT ON COLUMN v1.tracelens_gpu_timeline."percent" IS 'Share of total_time. [percent]';
