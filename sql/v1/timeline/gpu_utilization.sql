-- How busy is each GPU over time?
-- Grain: capture × device × window. The time of a device from the first start to the last end of its events is divided
-- into up to 120 windows of equal whole nanoseconds; the last may be shorter. Within each, time is divided as in
-- gpu_timeline: computation first, then collectives, then copies, each without the time covered by the previous ones.
-- Method: an event adds to each of the three unions its interval after the latest end so far (see v1._gpu_time), and
-- the intervals are cut at window boundaries. Layers and unions are written out here and in v1._gpu_time: that view only
-- sums lengths, and as one view of intervals it would give gpu_timeline three rows per event instead of one. If a report
-- chooses events of a device, union 4 is of all its events (hook part): time in which only others run is not idle.
CREATE VIEW v1.gpu_utilization AS
WITH events AS (
    SELECT
        e.capture_id AS clock_id,
        e.device_id AS gpu_id,
        e.start_ns,
        e.end_ns,
        CASE WHEN e.kind IN ('memcpy', 'memset') THEN 3 WHEN e.class = 'collective' THEN 2 ELSE 1 END AS layer
    FROM v1._gpu_event AS e /* join e */
    WHERE true /* filter e */
),
reaches AS (
    SELECT
        clock_id,
        gpu_id,
        start_ns,
        end_ns,
        layer,
        coalesce(max(end_ns) FILTER (layer = 1) OVER earlier, start_ns) AS reach_1_ns,
        coalesce(max(end_ns) FILTER (layer <= 2) OVER earlier, start_ns) AS reach_2_ns,
        coalesce(max(end_ns) OVER earlier, start_ns) AS reach_3_ns,
        min(start_ns) OVER device AS first_ns,
        max(end_ns) OVER device AS last_ns
    FROM events
    WINDOW
        earlier AS (
            PARTITION BY clock_id, gpu_id ORDER BY start_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ),
        device AS (
            PARTITION BY clock_id, gpu_id ORDER BY start_ns ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
        )
),
placed AS (
    SELECT
        r.clock_id,
        r.gpu_id,
        r.start_ns,
        r.end_ns,
        r.layer,
        r.reach_1_ns,
        r.reach_2_ns,
        r.reach_3_ns,
        r.first_ns,
        r.last_ns,
        greatest((r.last_ns - r.first_ns + 119) // 120, 1) AS window_ns,
        (r.start_ns - r.first_ns) // window_ns AS place,
        (r.end_ns - r.first_ns - 1) // window_ns AS last_place
    FROM reaches AS r
),
spans AS (
    SELECT
        clock_id,
        gpu_id,
        any_value(first_ns) AS first_ns,
        any_value(last_ns) AS last_ns,
        any_value(window_ns) AS window_ns
    FROM placed
    GROUP BY clock_id, gpu_id
),
-- The few events that lie in several windows, once for each, cut at the boundaries.
crossing AS (
    SELECT
        p.clock_id,
        p.gpu_id,
        p.layer,
        p.reach_1_ns,
        p.reach_2_ns,
        p.reach_3_ns,
        p.part AS place,
        greatest(p.start_ns, p.first_ns + p.part * p.window_ns) AS since_ns,
        least(p.end_ns, p.first_ns + (p.part + 1) * p.window_ns) AS until_ns
    FROM (
        SELECT
            w.clock_id,
            w.gpu_id,
            w.start_ns,
            w.end_ns,
            w.layer,
            w.reach_1_ns,
            w.reach_2_ns,
            w.reach_3_ns,
            w.first_ns,
            w.window_ns,
            unnest(range(w.place, w.last_place + 1)) AS part
        FROM placed AS w
        WHERE w.last_place > w.place
    ) AS p
),
-- What all events of the device add to union 4 (hook part), and gaps in which graph replays that were not recorded may
-- have run (5).
additions AS (
    SELECT clock_id, gpu_id, 4 AS union_no, greatest(start_ns, coalesce(reach_ns, start_ns)) AS start_ns, end_ns
    FROM (
        SELECT
            s.clock_id,
            s.gpu_id,
            greatest(o.start_ns, s.first_ns) AS start_ns,
            least(o.end_ns, s.last_ns) AS end_ns,
            max(o.end_ns) OVER (
                PARTITION BY s.clock_id, s.gpu_id
                ORDER BY o.start_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ) AS reach_ns
        FROM v1._unclassed_event AS o
        INNER JOIN spans AS s ON s.clock_id = o.capture_id AND s.gpu_id IS NOT DISTINCT FROM o.device_id
        WHERE /* whole */ false /* part o.start_ns < s.last_ns AND o.end_ns > s.first_ns */
    ) AS device_events
    WHERE end_ns > coalesce(reach_ns, start_ns)
    UNION ALL
    SELECT s.clock_id, s.gpu_id, 5 AS union_no, greatest(r.start_ns, s.first_ns), least(r.end_ns, s.last_ns)
    FROM main.unrecorded_span AS r
    INNER JOIN spans AS s ON s.clock_id = r.capture_id AND s.gpu_id IS NOT DISTINCT FROM r.device_id
    WHERE r.start_ns < s.last_ns AND r.end_ns > s.first_ns
),
other AS (
    SELECT
        a.clock_id,
        a.gpu_id,
        a.union_no,
        a.start_ns - s.first_ns AS since_ns,
        a.end_ns - s.first_ns AS until_ns,
        s.window_ns,
        unnest(range((a.start_ns - s.first_ns) // s.window_ns, (a.end_ns - s.first_ns - 1) // s.window_ns + 1)) AS place
    FROM additions AS a
    INNER JOIN spans AS s ON s.clock_id = a.clock_id AND s.gpu_id IS NOT DISTINCT FROM a.gpu_id
),
-- What an event adds to the union of the layers up to a given one: from the latest end so far to its own end.
unions AS (
    SELECT
        clock_id,
        gpu_id,
        place,
        sum(end_ns - greatest(start_ns, reach_1_ns)) FILTER (layer = 1 AND end_ns > reach_1_ns) AS union_1_ns,
        sum(end_ns - greatest(start_ns, reach_2_ns)) FILTER (layer <= 2 AND end_ns > reach_2_ns) AS union_2_ns,
        sum(end_ns - greatest(start_ns, reach_3_ns)) FILTER (end_ns > reach_3_ns) AS union_3_ns,
        NULL AS union_4_ns,
        NULL AS unrecorded_ns
    FROM placed
    WHERE last_place <= place
    GROUP BY clock_id, gpu_id, place
    UNION ALL
    SELECT
        clock_id,
        gpu_id,
        place,
        sum(greatest(until_ns - greatest(since_ns, reach_1_ns), 0)) FILTER (layer = 1) AS union_1_ns,
        sum(greatest(until_ns - greatest(since_ns, reach_2_ns), 0)) FILTER (layer <= 2) AS union_2_ns,
        sum(greatest(until_ns - greatest(since_ns, reach_3_ns), 0)) AS union_3_ns,
        NULL AS union_4_ns,
        NULL AS unrecorded_ns
    FROM crossing
    GROUP BY clock_id, gpu_id, place
    UNION ALL
    SELECT
        clock_id,
        gpu_id,
        place,
        NULL AS union_1_ns,
        NULL AS union_2_ns,
        NULL AS union_3_ns,
        sum(least(until_ns, (place + 1) * window_ns) - greatest(since_ns, place * window_ns))
            FILTER (union_no = 4) AS union_4_ns,
        sum(least(until_ns, (place + 1) * window_ns) - greatest(since_ns, place * window_ns))
            FILTER (union_no = 5) AS unrecorded_ns
    FROM other
    GROUP BY clock_id, gpu_id, place
),
windows AS (
    SELECT
        clock_id,
        gpu_id,
        first_ns,
        last_ns,
        window_ns,
        unnest(range(0, greatest((last_ns - first_ns + window_ns - 1) // window_ns, 1))) AS place
    FROM spans
),
parts AS (
    SELECT
        w.clock_id,
        w.gpu_id,
        w.place,
        any_value(w.first_ns + w.place * w.window_ns) AS start_ns,
        any_value(w.place * w.window_ns) AS since_ns,
        any_value(least(w.window_ns, w.last_ns - w.first_ns - w.place * w.window_ns)) AS window_ns,
        coalesce(sum(u.union_1_ns), 0) AS union_1_ns,
        coalesce(sum(u.union_2_ns), 0) AS union_2_ns,
        coalesce(sum(u.union_3_ns), 0) AS union_3_ns,
        coalesce(sum(u.union_4_ns), 0) AS union_4_ns,
        coalesce(sum(u.unrecorded_ns), 0) AS unrecorded_ns
    FROM windows AS w
    LEFT JOIN unions AS u
        ON u.clock_id = w.clock_id AND u.gpu_id IS NOT DISTINCT FROM w.gpu_id AND u.place = w.place
    GROUP BY w.clock_id, w.gpu_id, w.place
)
SELECT
    p.clock_id AS capture_id,
    c.rank,
    c.labels,
    p.gpu_id AS device_id,
    p.place + 1 AS window_index,
    p.start_ns,
    p.since_ns,
    p.window_ns,
    p.union_1_ns::BIGINT AS computation_ns,
    100.0 * p.union_1_ns / nullif(p.window_ns, 0) AS computation_percent,
    (p.union_2_ns - p.union_1_ns)::BIGINT AS exposed_collective_ns,
    100.0 * (p.union_2_ns - p.union_1_ns) / nullif(p.window_ns, 0) AS exposed_collective_percent,
    (p.union_3_ns - p.union_2_ns)::BIGINT AS exposed_copy_ns,
    100.0 * (p.union_3_ns - p.union_2_ns) / nullif(p.window_ns, 0) AS exposed_copy_percent,
    p.union_3_ns::BIGINT AS busy_ns,
    100.0 * p.union_3_ns / nullif(p.window_ns, 0) AS busy_percent,
    greatest(p.union_4_ns - p.union_3_ns, 0)::BIGINT AS other_ns,
    100.0 * greatest(p.union_4_ns - p.union_3_ns, 0) / nullif(p.window_ns, 0) AS other_percent,
    (p.window_ns - greatest(p.union_3_ns, p.union_4_ns) - p.unrecorded_ns)::BIGINT AS idle_ns,
    100.0 * (p.window_ns - greatest(p.union_3_ns, p.union_4_ns) - p.unrecorded_ns) / nullif(p.window_ns, 0) AS idle_percent
FROM parts AS p
LEFT JOIN main.capture AS c ON c.capture_id = p.clock_id;

COMMENT ON VIEW v1.gpu_utilization IS 'GPU utilization over time, in up to 120 windows: computation, exposed collectives and exposed copies. Grain: capture × device × window.';
COMMENT ON COLUMN v1.gpu_utilization.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN v1.gpu_utilization.rank IS 'Rank of the capture; NULL if unknown. [-]';
COMMENT ON COLUMN v1.gpu_utilization.labels IS 'Labels of the capture: sweep, threads, channels and others.';
COMMENT ON COLUMN v1.gpu_utilization.device_id IS 'Device number within the capture. [-]';
COMMENT ON COLUMN v1.gpu_utilization.window_index IS 'Index of the window on its device, from 1. [-]';
COMMENT ON COLUMN v1.gpu_utilization.start_ns IS 'Start of the window, on the capture''s clock. [ns]';
COMMENT ON COLUMN v1.gpu_utilization.since_ns IS 'Start of the window minus the start of the device''s first event. [ns]';
COMMENT ON COLUMN v1.gpu_utilization.window_ns IS 'Length of the window. [ns]';
COMMENT ON COLUMN v1.gpu_utilization.computation_ns IS 'Time during which a kernel other than a collective, or a graph replay, runs. [ns]';
COMMENT ON COLUMN v1.gpu_utilization.computation_percent IS 'Share of the window. [percent]';
COMMENT ON COLUMN v1.gpu_utilization.exposed_collective_ns IS 'Time during which a collective runs and no computation does. [ns]';
COMMENT ON COLUMN v1.gpu_utilization.exposed_collective_percent IS 'Share of the window. [percent]';
COMMENT ON COLUMN v1.gpu_utilization.exposed_copy_ns IS 'Time during which a copy or memset runs, and neither computation nor a collective does. [ns]';
COMMENT ON COLUMN v1.gpu_utilization.exposed_copy_percent IS 'Share of the window. [percent]';
COMMENT ON COLUMN v1.gpu_utilization.busy_ns IS 'Time during which anything runs. [ns]';
COMMENT ON COLUMN v1.gpu_utilization.busy_percent IS 'Share of the window. [percent]';
COMMENT ON COLUMN v1.gpu_utilization.other_ns IS 'Time during which only work runs that the report leaves out (--class, --range, --skip-warmup); 0 if it leaves out none. [ns]';
COMMENT ON COLUMN v1.gpu_utilization.other_percent IS 'Share of the window. [percent]';
COMMENT ON COLUMN v1.gpu_utilization.idle_ns IS 'Time during which nothing runs on the device. The rest of the window, after busy_ns and other_ns, may have had graph replays without recorded kernels, as unrecorded_ns in gpu_timeline. [ns]';
COMMENT ON COLUMN v1.gpu_utilization.idle_percent IS 'Share of the window. [percent]';
