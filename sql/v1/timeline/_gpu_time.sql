-- How long does computation, computation or collectives, and anything at all run on each GPU?
-- Grain: capture × device. One ordered pass over the events: an event adds to a union the part of it after the latest
-- end so far of that union. The total excludes gaps in which unrecorded graph replays may have run
-- (main.unrecorded_span). If a report chooses or groups events of a device, time in which only other work runs is
-- neither busy nor idle, and not part of the total (hook part). Views that use this view do not repeat it: if a report
-- has filters or --by, the text of this view replaces its name (hook inline), so that they apply to the events.
CREATE VIEW v1._gpu_time AS
WITH events AS (
    SELECT
        /* by e */
        e.capture_id AS clock_id,
        e.device_id AS gpu_id,
        e.start_ns,
        e.end_ns,
        /* whole */ NULL::BIGINT /* part e.idle_before_ns */ AS idle_before_ns,
        CASE WHEN e.kind IN ('memcpy', 'memset') THEN 3 WHEN e.class = 'collective' THEN 2 ELSE 1 END AS layer
    FROM v1._gpu_event AS e /* join e */
    WHERE true /* filter e */
),
-- The latest end so far of layer 1, of 1 and 2, and of all three.
reaches AS (
    SELECT
        /* by */
        clock_id,
        gpu_id,
        start_ns,
        end_ns,
        layer,
        idle_before_ns,
        coalesce(max(end_ns) FILTER (layer = 1) OVER earlier, start_ns) AS reach_1_ns,
        coalesce(max(end_ns) FILTER (layer <= 2) OVER earlier, start_ns) AS reach_2_ns,
        coalesce(max(end_ns) OVER earlier, start_ns) AS reach_3_ns
    FROM events
    WINDOW earlier AS (
        PARTITION BY /* by */ clock_id, gpu_id
        ORDER BY start_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    )
),
times AS (
    SELECT
        /* by */
        clock_id,
        gpu_id,
        coalesce(sum(greatest(end_ns, reach_1_ns) - greatest(start_ns, reach_1_ns)) FILTER (layer = 1), 0) AS union_1_ns,
        coalesce(sum(greatest(end_ns, reach_2_ns) - greatest(start_ns, reach_2_ns)) FILTER (layer <= 2), 0) AS union_2_ns,
        sum(greatest(end_ns, reach_3_ns) - greatest(start_ns, reach_3_ns)) AS union_3_ns,
        /* whole */ NULL::BIGINT /* part sum(idle_before_ns) - arg_min(idle_before_ns, (start_ns, -idle_before_ns)) */ AS idle_ns,
        min(start_ns) AS first_ns,
        max(end_ns) AS last_ns
    FROM reaches
    GROUP BY /* by */ clock_id, gpu_id
),
recorded AS (
    SELECT
        /* by t */
        t.clock_id,
        t.gpu_id,
        t.union_1_ns,
        t.union_2_ns,
        t.union_3_ns,
        t.idle_ns,
        t.last_ns - t.first_ns AS span_ns,
        coalesce(sum(least(u.end_ns, t.last_ns) - greatest(u.start_ns, t.first_ns))
            FILTER (u.capture_id IS NOT NULL), 0) AS unrecorded_ns
    FROM times AS t
    LEFT JOIN main.unrecorded_span AS u
        ON u.capture_id = t.clock_id AND u.device_id IS NOT DISTINCT FROM t.gpu_id
        AND u.start_ns < t.last_ns AND u.end_ns > t.first_ns
    GROUP BY ALL
)
SELECT
    /* by */
    clock_id,
    gpu_id,
    union_1_ns,
    union_2_ns,
    union_3_ns,
    unrecorded_ns,
    /* whole */ span_ns - unrecorded_ns /* part union_3_ns + coalesce(idle_ns, 0) */ AS total_ns
FROM recorded;
