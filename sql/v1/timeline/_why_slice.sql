-- What did each device do, moment by moment, in its steps?
-- Grain: capture × device × slice of the window, in which the state does not change: compute, collective (and no
-- computation), copy (and neither), unrecorded (main.unrecorded_span) or idle. Slices cover the window exactly. The
-- window goes from the start of the first step that has selected GPU work to the end of the last one, on host or GPU;
-- without marked steps, from the first start to the last end. event_id is the latest event to start of those that run;
-- of an idle slice, the event that ends it. first_launch_ns: the first launch call of anything that starts at or after
-- that event. If a report chooses events of a device (hook part), time is divided in the same way, and slices of other
-- work are left out with the idle time that ends with it; at the end of the window, that begins with it.
CREATE VIEW v1._why_slice AS
WITH events AS (
    SELECT
        e.capture_id AS clock_id,
        e.device_id AS gpu_id,
        e.event_id,
        e.start_ns,
        e.end_ns,
        CASE WHEN e.kind IN ('memcpy', 'memset') THEN 3 WHEN e.class = 'collective' THEN 2 ELSE 1 END AS layer,
        k.step,
        /* whole */ min(l.start_ns) OVER (
            PARTITION BY e.capture_id, e.device_id ORDER BY e.start_ns, e.event_id
            ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING
        ) /* part e.next_launch_ns */ AS first_launch_ns
    FROM v1._gpu_event AS e /* join e */
    LEFT JOIN v1._timed_launch AS l ON l.capture_id = e.capture_id AND l.launch_id = e.launch_id
    LEFT JOIN v1._step_kernel AS k ON k.capture_id = e.capture_id AND k.event_id = e.event_id
    WHERE true /* filter e */
),
marks AS (
    SELECT t.capture_id, t.step, min(a.start_ns) AS start_ns, max(a.start_ns + a.duration_ns) AS end_ns
    FROM v1._step AS t
    INNER JOIN main.annotation AS a ON a.capture_id = t.capture_id AND a.annotation_id = t.annotation_id
    WHERE t.step IS NOT NULL
    GROUP BY t.capture_id, t.step
),
worked AS (
    SELECT e.clock_id, e.gpu_id, e.step, min(e.start_ns) AS start_ns, max(e.end_ns) AS end_ns
    FROM events AS e
    GROUP BY e.clock_id, e.gpu_id, e.step
),
windows AS (
    SELECT
        w.clock_id,
        w.gpu_id,
        count(w.step) AS steps,
        CASE WHEN count(w.step) > 0 THEN min(m.start_ns) ELSE min(w.start_ns) END AS from_ns,
        CASE WHEN count(w.step) > 0 THEN max(greatest(w.end_ns, m.end_ns)) FILTER (w.step IS NOT NULL) ELSE max(w.end_ns) END
            AS to_ns
    FROM worked AS w
    LEFT JOIN marks AS m ON m.capture_id = w.clock_id AND m.step = w.step
    GROUP BY w.clock_id, w.gpu_id
),
cut AS (
    SELECT
        e.clock_id, e.gpu_id, e.event_id, e.layer, e.first_launch_ns,
        greatest(e.start_ns, w.from_ns) AS start_ns,
        least(e.end_ns, w.to_ns) AS end_ns
    FROM events AS e
    INNER JOIN windows AS w ON w.clock_id = e.clock_id AND w.gpu_id IS NOT DISTINCT FROM e.gpu_id
    WHERE e.end_ns > w.from_ns AND e.start_ns < w.to_ns AND e.end_ns > e.start_ns
    UNION ALL
    -- Other work: layers 11 to 13, without a number.
    SELECT
        o.capture_id, o.device_id, -1,
        CASE WHEN o.kind IN ('memcpy', 'memset') THEN 13 WHEN o.class = 'collective' THEN 12 ELSE 11 END,
        NULL, greatest(o.start_ns, w.from_ns), least(o.end_ns, w.to_ns)
    FROM v1._gpu_event AS o
    INNER JOIN windows AS w ON w.clock_id = o.capture_id AND w.gpu_id IS NOT DISTINCT FROM o.device_id
    ANTI JOIN events AS e ON e.clock_id = o.capture_id AND e.event_id = o.event_id
    WHERE /* whole */ false /* part o.end_ns > w.from_ns AND o.start_ns < w.to_ns AND o.end_ns > o.start_ns */
    UNION ALL
    SELECT u.capture_id, u.device_id, NULL, 4, NULL, greatest(u.start_ns, w.from_ns), least(u.end_ns, w.to_ns)
    FROM main.unrecorded_span AS u
    INNER JOIN windows AS w ON w.clock_id = u.capture_id AND w.gpu_id IS NOT DISTINCT FROM u.device_id
    WHERE u.end_ns > w.from_ns AND u.start_ns < w.to_ns
),
edges AS (
    SELECT c.clock_id, c.gpu_id, c.start_ns AS at_ns, c.layer, 1 AS change, c.event_id, c.first_launch_ns
    FROM cut AS c
    UNION ALL
    SELECT c.clock_id, c.gpu_id, c.end_ns, c.layer, -1, NULL, NULL
    FROM cut AS c
    UNION ALL
    SELECT w.clock_id, w.gpu_id, unnest([w.from_ns, w.to_ns]), 0, 0, NULL, NULL
    FROM windows AS w
),
changes AS (
    SELECT
        d.clock_id, d.gpu_id, d.at_ns,
        sum(d.change) FILTER (d.layer = 1) AS change_1,
        sum(d.change) FILTER (d.layer = 2) AS change_2,
        sum(d.change) FILTER (d.layer = 3) AS change_3,
        sum(d.change) FILTER (d.layer = 4) AS change_4,
        /* whole */ 0 /* part sum(d.change) FILTER (d.layer = 11) */ AS other_1,
        /* whole */ 0 /* part sum(d.change) FILTER (d.layer = 12) */ AS other_2,
        /* whole */ 0 /* part sum(d.change) FILTER (d.layer = 13) */ AS other_3,
        /* whole */ true /* part bool_or(d.layer < 4 AND d.change = -1) */ AS ends_chosen,
        max(d.event_id) FILTER (d.layer = 1) AS event_1,
        max(d.event_id) FILTER (d.layer = 2) AS event_2,
        max(d.event_id) FILTER (d.layer = 3) AS event_3,
        max(d.event_id) AS any_event,
        min(d.first_launch_ns) AS first_launch_ns
    FROM edges AS d
    GROUP BY d.clock_id, d.gpu_id, d.at_ns
),
states AS (
    SELECT
        c.clock_id, c.gpu_id,
        c.at_ns AS start_ns,
        lead(c.at_ns) OVER ordered AS end_ns,
        coalesce(sum(c.change_1) OVER ordered, 0) AS running_1,
        coalesce(sum(c.change_2) OVER ordered, 0) AS running_2,
        coalesce(sum(c.change_3) OVER ordered, 0) AS running_3,
        coalesce(sum(c.change_4) OVER ordered, 0) AS running_4,
        /* whole */ 0 /* part coalesce(sum(c.other_1) OVER ordered, 0) */ AS others_1,
        /* whole */ 0 /* part coalesce(sum(c.other_2) OVER ordered, 0) */ AS others_2,
        /* whole */ 0 /* part coalesce(sum(c.other_3) OVER ordered, 0) */ AS others_3,
        c.ends_chosen,
        last_value(c.event_1 IGNORE NULLS) OVER ordered AS event_1,
        last_value(c.event_2 IGNORE NULLS) OVER ordered AS event_2,
        last_value(c.event_3 IGNORE NULLS) OVER ordered AS event_3,
        first_value(c.any_event IGNORE NULLS) OVER later AS next_event,
        min(c.first_launch_ns) OVER later AS first_launch_ns
    FROM changes AS c
    WINDOW
        ordered AS (PARTITION BY c.clock_id, c.gpu_id ORDER BY c.at_ns),
        later AS (
            PARTITION BY c.clock_id, c.gpu_id ORDER BY c.at_ns ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING
        )
)
SELECT
    s.clock_id,
    s.gpu_id,
    w.steps,
    w.from_ns,
    s.start_ns,
    s.end_ns,
    CASE
        WHEN s.running_1 > 0 THEN 'compute'
        WHEN s.others_1 > 0 THEN 'other'
        WHEN s.running_2 > 0 THEN 'collective'
        WHEN s.others_2 > 0 THEN 'other'
        WHEN s.running_3 > 0 THEN 'copy'
        WHEN s.others_3 > 0 THEN 'other'
        WHEN s.running_4 > 0 THEN 'unrecorded'
        ELSE 'idle'
    END AS state,
    CASE state WHEN 'compute' THEN s.event_1 WHEN 'collective' THEN s.event_2 WHEN 'copy' THEN s.event_3 ELSE s.next_event END
        AS event_id,
    CASE WHEN state = 'idle' THEN s.first_launch_ns END AS first_launch_ns
FROM states AS s
INNER JOIN windows AS w ON w.clock_id = s.clock_id AND w.gpu_id IS NOT DISTINCT FROM s.gpu_id
WHERE s.end_ns > s.start_ns
    AND /* whole */ true /* part state <> 'other' AND (state <> 'idle' OR coalesce(s.next_event, CASE WHEN s.ends_chosen THEN 0 ELSE -1 END) >= 0) */;
