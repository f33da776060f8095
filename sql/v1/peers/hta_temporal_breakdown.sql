-- The report temporal_breakdown of HTA, with its columns, units and rounding.
-- Grain: capture, that is, rank, over all its devices. Computation is defined by name as in HTA: a kernel that does not
-- match `^nccl.*Kernel` and has neither Memcpy nor Sync in its name; RCCL counts as computation too. Non-compute is the
-- rest of the busy time. v1.gpu_timeline recognises other collectives, separates devices and keeps nanoseconds.
-- Where a report chooses events, other work is neither idle nor part of the total (hook part, see v1._gpu_time).
CREATE VIEW v1.hta_temporal_breakdown AS
-- By distinct name: matching a pattern against each of millions of events takes most of the time.
WITH named AS (
    SELECT d.name, NOT regexp_matches(d.name, '^nccl.*Kernel|Memcpy|^Memset|Sync') AS computes
    FROM (SELECT e.name FROM main.kernel_event AS e GROUP BY e.name HAVING count(*) > 0) AS d
),
events AS (
    SELECT
        /* by e */
        e.capture_id AS clock_id,
        e.start_ns,
        e.end_ns,
        /* whole */ NULL::BIGINT /* part e.capture_idle_before_ns */ AS idle_before_ns,
        e.kind NOT IN ('memcpy', 'memset') AND d.computes AS computes
    FROM v1._gpu_event AS e /* join e */
    LEFT JOIN named AS d ON d.name = e.name
    WHERE true /* filter e */
),
reaches AS (
    SELECT
        /* by */
        clock_id,
        start_ns,
        end_ns,
        computes,
        idle_before_ns,
        coalesce(max(end_ns) FILTER (computes) OVER earlier, start_ns) AS compute_reach_ns,
        coalesce(max(end_ns) OVER earlier, start_ns) AS reach_ns
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
        coalesce(
            sum(greatest(end_ns, compute_reach_ns) - greatest(start_ns, compute_reach_ns)) FILTER (computes), 0
        ) AS compute_ns,
        sum(greatest(end_ns, reach_ns) - greatest(start_ns, reach_ns)) AS busy_ns,
        /* whole */ max(end_ns) - min(start_ns) /* part sum(greatest(end_ns, reach_ns) - greatest(start_ns, reach_ns)) + sum(idle_before_ns) - arg_min(idle_before_ns, (start_ns, -idle_before_ns)) */ AS total_ns
    FROM reaches
    GROUP BY /* by */ clock_id
)
SELECT
    /* by */
    /* grain */
    clock_id AS capture_id, any_value(c.labels) AS labels, any_value(c.rank) AS rank,
    /* end grain */
    sum(total_ns - busy_ns) / 1e3 AS "idle_time(us)",
    sum(compute_ns) / 1e3 AS "compute_time(us)",
    sum(busy_ns - compute_ns) / 1e3 AS "non_compute_time(us)",
    sum(total_ns) / 1e3 AS "kernel_time(us)",
    round(100.0 * sum(total_ns - busy_ns) / nullif(sum(total_ns), 0), 2) AS "idle_time_pctg",
    round(100.0 * sum(compute_ns) / nullif(sum(total_ns), 0), 2) AS "compute_time_pctg",
    round(100.0 * sum(busy_ns - compute_ns) / nullif(sum(total_ns), 0), 2) AS "non_compute_time_pctg"
FROM unions
/* grain */ LEFT JOIN main.capture AS c ON c.capture_id = clock_id /* end grain */
GROUP BY ALL;

COMMENT ON VIEW v1.hta_temporal_breakdown IS 'Idle, compute and non-compute time of each rank, like HTA''s get_temporal_breakdown. Grain: capture.';
COMMENT ON COLUMN v1.hta_temporal_breakdown.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN v1.hta_temporal_breakdown.labels IS 'Labels of the capture: sweep, threads, channels and others.';
COMMENT ON COLUMN v1.hta_temporal_breakdown.rank IS 'Rank of the capture; NULL if unknown. [-]';
COMMENT ON COLUMN v1.hta_temporal_breakdown."idle_time(us)" IS 'Time during which nothing runs on any device of the capture. Where a report chooses events (--class, --range, --skip-warmup): the part of it that ends with one of them; other work is not idle time. [µs]';
COMMENT ON COLUMN v1.hta_temporal_breakdown."compute_time(us)" IS 'Time during which computation runs; HTA decides by name what is computation. [µs]';
COMMENT ON COLUMN v1.hta_temporal_breakdown."non_compute_time(us)" IS 'Time during which something runs, but no computation: communication, copies and memsets. [µs]';
COMMENT ON COLUMN v1.hta_temporal_breakdown."kernel_time(us)" IS 'From the first start to the last end (with --by: summed over captures), without other work where a report chooses events. [µs]';
COMMENT ON COLUMN v1.hta_temporal_breakdown."idle_time_pctg" IS 'Share of the kernel time, rounded to 0.01. [percent]';
COMMENT ON COLUMN v1.hta_temporal_breakdown."compute_time_pctg" IS 'Share of the kernel time, rounded to 0.01. [percent]';
COMMENT ON COLUMN v1.hta_temporal_breakdown."non_compute_time_pctg" IS 'Share of the kernel time, rounded to 0.01. [percent]';
