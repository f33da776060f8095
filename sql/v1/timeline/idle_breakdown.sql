-- Why is the GPU not computing: nothing launched, launched but not started, or waiting for a collective?
-- Grain: capture × device. An idle gap lies between the latest end so far and the next start. Up to the first launch
-- call of anything that starts later it is host-bound, because nothing is pending; after that it is device-bound:
-- launch overhead, or waiting for another stream. If the launch of the event that ends the gap was not recorded, the
-- part up to the first recorded launch is unknown: work may have been pending. So host + device + unknown = idle,
-- exactly, and idle is that of gpu_timeline. Exposed collectives are not idle although the device waits; they are a
-- separate column.
CREATE VIEW v1.idle_breakdown AS
WITH events AS (
    SELECT
        /* by e */
        e.capture_id AS clock_id,
        e.device_id AS gpu_id,
        e.event_id,
        e.start_ns,
        e.end_ns,
        /* whole */ NULL::BIGINT /* part e.reach_ns */ AS device_reach_ns,
        l.start_ns IS NOT NULL AS is_launched,
        /* whole */ l.start_ns /* part e.next_launch_ns */ AS launch_ns,
        CASE WHEN e.kind IN ('memcpy', 'memset') THEN 3 WHEN e.class = 'collective' THEN 2 ELSE 1 END AS layer
    FROM v1._gpu_event AS e /* join e */
    LEFT JOIN v1._timed_launch AS l ON l.capture_id = e.capture_id AND l.launch_id = e.launch_id
    WHERE true /* filter e */
),
reaches AS (
    SELECT
        /* by */
        clock_id,
        gpu_id,
        start_ns,
        end_ns,
        layer,
        is_launched,
        /* whole */ max(end_ns) OVER earlier /* part CASE WHEN max(end_ns) OVER earlier IS NOT NULL THEN device_reach_ns END */
            AS from_ns,
        coalesce(max(end_ns) FILTER (layer = 1) OVER earlier, start_ns) AS reach_1_ns,
        coalesce(max(end_ns) FILTER (layer <= 2) OVER earlier, start_ns) AS reach_2_ns,
        min(launch_ns) OVER (
            PARTITION BY /* by */ clock_id, gpu_id
            ORDER BY start_ns, event_id
            ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING
        ) AS next_launch_ns
    FROM events
    WINDOW earlier AS (
        PARTITION BY /* by */ clock_id, gpu_id
        ORDER BY start_ns, event_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    )
),
-- An idle gap ends where graph replays that were not recorded may have run.
gaps AS (
    SELECT
        /* by h */
        h.clock_id,
        h.gpu_id,
        h.start_ns,
        h.end_ns,
        h.layer,
        h.is_launched,
        h.reach_1_ns,
        h.reach_2_ns,
        h.next_launch_ns,
        greatest(least(h.start_ns, u.start_ns) - h.from_ns, 0) AS idle_ns,
        greatest(least(h.start_ns, u.start_ns, h.next_launch_ns) - h.from_ns, 0) AS before_launch_ns
    FROM reaches AS h
    LEFT JOIN main.unrecorded_span AS u
        ON u.capture_id = h.clock_id AND u.device_id IS NOT DISTINCT FROM h.gpu_id AND u.end_ns = h.start_ns
),
times AS (
    SELECT
        /* by */
        /* grain */ clock_id, gpu_id, /* end grain */
        count(*) FILTER (idle_ns > 0) AS gaps,
        coalesce(sum(idle_ns), 0)::BIGINT AS idle_ns,
        coalesce(max(idle_ns), 0)::BIGINT AS longest_gap_ns,
        coalesce(sum(before_launch_ns) FILTER (NOT is_launched), 0)::BIGINT AS unknown_ns,
        -- NULL if the causes of all idle time, or all launches, were not recorded: then they are not 0.
        CASE WHEN count(next_launch_ns) > 0
            AND coalesce(bool_or(is_launched OR before_launch_ns < idle_ns) FILTER (idle_ns > 0), true)
        THEN
            coalesce(sum(before_launch_ns) FILTER (is_launched), 0)
        END::BIGINT AS host_bound_ns,
        CASE WHEN count(next_launch_ns) > 0
            AND coalesce(bool_or(is_launched OR before_launch_ns < idle_ns) FILTER (idle_ns > 0), true)
        THEN
            sum(idle_ns - before_launch_ns)
        END::BIGINT AS device_bound_ns,
        (coalesce(sum(greatest(end_ns, reach_2_ns) - greatest(start_ns, reach_2_ns)) FILTER (layer <= 2), 0)
            - coalesce(sum(greatest(end_ns, reach_1_ns) - greatest(start_ns, reach_1_ns)) FILTER (layer = 1), 0))::BIGINT
            AS collective_wait_ns
    FROM gaps
    GROUP BY ALL
)
SELECT
    /* by s */
    /* grain */ s.clock_id AS capture_id, c.rank, c.labels, s.gpu_id AS device_id, /* end grain */
    s.gaps,
    s.idle_ns,
    s.longest_gap_ns,
    s.host_bound_ns,
    100.0 * s.host_bound_ns / nullif(s.idle_ns, 0) AS host_bound_percent,
    s.device_bound_ns,
    100.0 * s.device_bound_ns / nullif(s.idle_ns, 0) AS device_bound_percent,
    s.unknown_ns,
    100.0 * s.unknown_ns / nullif(s.idle_ns, 0) AS unknown_percent,
    s.collective_wait_ns
FROM times AS s
/* grain */ LEFT JOIN main.capture AS c ON c.capture_id = s.clock_id /* end grain */;

COMMENT ON VIEW v1.idle_breakdown IS 'Idle time of each GPU by cause: nothing launched (host-bound), or launched but not started (device-bound); exposed collectives for comparison. Grain: capture × device.';
COMMENT ON COLUMN v1.idle_breakdown.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN v1.idle_breakdown.rank IS 'Rank of the capture; NULL if unknown. [-]';
COMMENT ON COLUMN v1.idle_breakdown.labels IS 'Labels of the capture: sweep, threads, channels and others.';
COMMENT ON COLUMN v1.idle_breakdown.device_id IS 'Device number within the capture. [-]';
COMMENT ON COLUMN v1.idle_breakdown.gaps IS 'Number of idle gaps. [count]';
COMMENT ON COLUMN v1.idle_breakdown.idle_ns IS 'Time during which nothing runs, from the first start to the last end; where a report chooses or groups events of a device, the part of it that ends with them, as in gpu_timeline. [ns]';
COMMENT ON COLUMN v1.idle_breakdown.longest_gap_ns IS 'The longest idle gap of a device in this row. [ns]';
COMMENT ON COLUMN v1.idle_breakdown.host_bound_ns IS 'Part of the idle time in which no launched work is pending; NULL if all of it is unknown or no launch was recorded. [ns]';
COMMENT ON COLUMN v1.idle_breakdown.host_bound_percent IS 'Share of the idle time. [percent]';
COMMENT ON COLUMN v1.idle_breakdown.device_bound_ns IS 'Part of the idle time in which launched work is pending; NULL if all of it is unknown or no launch was recorded. [ns]';
COMMENT ON COLUMN v1.idle_breakdown.device_bound_percent IS 'Share of the idle time. [percent]';
COMMENT ON COLUMN v1.idle_breakdown.unknown_ns IS 'Part of the idle time for which this is unknown, because the launch of the event that ends the gap was not recorded. [ns]';
COMMENT ON COLUMN v1.idle_breakdown.unknown_percent IS 'Share of the idle time. [percent]';
COMMENT ON COLUMN v1.idle_breakdown.collective_wait_ns IS 'Time during which collectives run and no computation does; not part of the idle time. [ns]';
