-- How long does computation, computation or collectives, and anything at all run on each GPU?
-- Grain: capture × device. One ordered pass over the events: from a start to the next one, a union lasts until the
-- latest end so far of its layers. Devices follow one another on a common time axis, each in the place of its own span,
-- so none reaches into the next. The axis is cut into lots of some four million events, which are the partitions of the
-- pass: DuckDB computes a running maximum twice as fast in a few large partitions as in many small ones. The total
-- excludes gaps in which unrecorded graph replays may have run (main.unrecorded_span). If a report chooses or groups
-- events of a device, time in which only other work runs is neither busy nor idle, and not part of the total (hook part).
-- Views that use this view do not repeat it: if a report has filters or --by, the text of this view replaces its name
-- (hook inline), so that they apply to the events.
CREATE VIEW v1._gpu_time AS
WITH spans AS (
    SELECT
        e.capture_id AS clock_id,
        e.device_id AS gpu_id,
        count(*) AS events,
        min(e.start_ns) AS first_ns,
        max(e.end_ns) - min(e.start_ns) AS span_ns
    FROM v1._unclassed_event AS e /* join e */
    WHERE true /* filter e */
    GROUP BY e.capture_id, e.device_id
),
-- Where each device starts on the axis. A lot also ends after 2^61 ns, so that no time overflows.
places AS (
    SELECT
        clock_id,
        gpu_id,
        first_ns - ((sum(span_ns) OVER up_to - span_ns) % 2305843009213693952)::BIGINT AS shift_ns,
        ((sum(events) OVER up_to - events) // 4000000
            + (sum(span_ns) OVER up_to - span_ns) // 2305843009213693952)::BIGINT AS lot
    FROM spans
    WINDOW up_to AS (ORDER BY clock_id, gpu_id)
),
events AS (
    SELECT
        /* by e */
        e.capture_id AS clock_id,
        e.device_id AS gpu_id,
        p.lot,
        p.shift_ns,
        e.start_ns - p.shift_ns AS start_ns,
        e.end_ns - p.shift_ns AS end_ns,
        /* whole */ NULL::BIGINT /* part e.idle_before_ns */ AS idle_before_ns,
        CASE WHEN e.kind IN ('memcpy', 'memset') THEN 3 WHEN e.class = 'collective' THEN 2 ELSE 1 END AS layer
    FROM v1._gpu_event AS e /* join e */
    INNER JOIN places AS p ON p.clock_id = e.capture_id AND p.gpu_id IS NOT DISTINCT FROM e.device_id
    WHERE true /* filter e */
),
-- The latest end so far of layer 1, of 1 and 2, and of all three.
reaches AS (
    SELECT
        /* by */
        clock_id,
        gpu_id,
        shift_ns,
        start_ns,
        end_ns,
        idle_before_ns,
        coalesce(max(end_ns) FILTER (layer = 1) OVER so_far, start_ns) AS reach_1_ns,
        coalesce(max(end_ns) FILTER (layer <= 2) OVER so_far, start_ns) AS reach_2_ns,
        max(end_ns) OVER so_far AS reach_3_ns,
        lead(start_ns) OVER following AS next_ns
    FROM events
    WINDOW
        so_far AS (PARTITION BY /* by */ lot ORDER BY start_ns ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW),
        following AS (PARTITION BY /* by */ lot ORDER BY start_ns)
),
times AS (
    SELECT
        /* by */
        clock_id,
        gpu_id,
        sum(greatest(least(reach_1_ns, coalesce(next_ns, reach_1_ns)) - start_ns, 0)) AS union_1_ns,
        sum(greatest(least(reach_2_ns, coalesce(next_ns, reach_2_ns)) - start_ns, 0)) AS union_2_ns,
        sum(greatest(least(reach_3_ns, coalesce(next_ns, reach_3_ns)) - start_ns, 0)) AS union_3_ns,
        /* whole */ NULL::BIGINT /* part sum(idle_before_ns) - arg_min(idle_before_ns, (start_ns, -idle_before_ns)) */ AS idle_ns,
        min(start_ns) + any_value(shift_ns) AS first_ns,
        max(end_ns) + any_value(shift_ns) AS last_ns
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
