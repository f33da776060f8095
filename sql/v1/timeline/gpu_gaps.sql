-- When is a GPU idle, between which events, and was work launched in time?
-- Grain: idle interval of a device between its first and last GPU event. Method: one ordered pass; a gap opens if an
-- event starts after the latest end so far. Work was pending if the launch of any later event had returned before the
-- gap began: then the GPU waited for something else (another stream, a copy, an event), not for the CPU. If none had,
-- but the launch of the event that ends the gap was not recorded, it is unknown.
-- Every event is sorted, so it carries a number instead of its name and class. Nearly always the previous event is the
-- one that ended last; only for the other gaps is that one looked up.
CREATE VIEW v1.gpu_gaps AS
-- Several steps read the numbers, which therefore must not depend on the order of the rows.
WITH numbers AS (
    SELECT k.name, k.class, row_number() OVER (ORDER BY k.name, k.class) AS kind_no
    FROM v1._gpu_event AS k
    GROUP BY k.name, k.class
),
-- Grouped, so that the optimiser can drop the join if names and classes are not used.
kinds AS (
    SELECT n.kind_no, any_value(n.name) AS name, any_value(n.class) AS class
    FROM numbers AS n
    GROUP BY n.kind_no
),
events AS (
    SELECT
        /* by e */
        e.capture_id AS clock_id,
        e.device_id AS gpu_id,
        e.event_id,
        n.kind_no,
        e.start_ns,
        e.end_ns,
        l.start_ns + l.duration_ns AS launched_ns,
        /* whole */ NULL::BIGINT /* part e.reach_ns */ AS device_reach_ns
    FROM v1._gpu_event AS e /* join e */
    INNER JOIN numbers AS n ON n.name = e.name AND n.class = e.class
    LEFT JOIN v1._timed_launch AS l ON l.capture_id = e.capture_id AND l.launch_id = e.launch_id
    WHERE true /* filter e */
),
passes AS (
    SELECT
        /* by */
        clock_id, gpu_id, event_id, kind_no, start_ns, launched_ns, device_reach_ns,
        lag(event_id) OVER ordered AS previous_event_id,
        lag(kind_no) OVER ordered AS previous_kind_no,
        lag(end_ns) OVER ordered AS previous_end_ns,
        max(end_ns) OVER before_previous AS earlier_reach_ns,
        min(launched_ns) OVER later AS first_launched_ns
    FROM events
    WINDOW
        ordered AS (PARTITION BY /* by */ clock_id, gpu_id ORDER BY start_ns, event_id),
        before_previous AS (
            PARTITION BY /* by */ clock_id, gpu_id
            ORDER BY start_ns, event_id ROWS BETWEEN UNBOUNDED PRECEDING AND 2 PRECEDING
        ),
        later AS (
            PARTITION BY /* by */ clock_id, gpu_id
            ORDER BY start_ns, event_id ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING
        )
),
reaches AS (
    SELECT
        /* by */
        clock_id, gpu_id, event_id, kind_no, start_ns, launched_ns, first_launched_ns,
        CASE WHEN previous_end_ns <= earlier_reach_ns THEN earlier_reach_ns ELSE previous_end_ns END AS events_reach_ns,
        /* whole */ events_reach_ns /* part CASE WHEN previous_end_ns IS NOT NULL THEN device_reach_ns END */ AS reach_ns,
        coalesce(previous_end_ns <= earlier_reach_ns, false) AS is_looked_up,
        CASE WHEN NOT is_looked_up AND previous_end_ns = reach_ns THEN previous_event_id END AS before_event_id,
        CASE WHEN NOT is_looked_up AND previous_end_ns = reach_ns THEN previous_kind_no END AS before_kind_no
    FROM passes
),
-- A gap ends where graph replays that were not recorded may have run.
gaps AS (
    SELECT
        /* by h */ h.clock_id, h.gpu_id, h.event_id, h.kind_no, h.launched_ns, h.first_launched_ns, h.reach_ns,
        h.is_looked_up, h.before_event_id, h.before_kind_no,
        least(h.start_ns, u.start_ns) AS idle_end_ns
    FROM reaches AS h
    LEFT JOIN main.unrecorded_span AS u
        ON u.capture_id = h.clock_id AND u.device_id IS NOT DISTINCT FROM h.gpu_id AND u.end_ns = h.start_ns
    WHERE least(h.start_ns, u.start_ns) > h.reach_ns
),
-- The event that ended last before a gap; if several ended at the same time, the one with the highest number.
ends AS (
    SELECT
        /* by g */ g.clock_id, g.event_id AS gap_no,
        max(e.event_id) AS event_id,
        arg_max(n.kind_no, e.event_id) AS kind_no
    FROM v1._gpu_event AS e /* join e */
    INNER JOIN gaps AS g
        ON g.clock_id = e.capture_id AND g.gpu_id IS NOT DISTINCT FROM e.device_id AND g.reach_ns = e.end_ns
        AND g.is_looked_up /* using g e base */
    INNER JOIN numbers AS n ON n.name = e.name AND n.class = e.class
    WHERE true /* filter e */
    GROUP BY /* by g */ g.clock_id, g.event_id
)
SELECT
    /* by g */
    g.clock_id AS capture_id,
    c.rank,
    c.labels,
    g.gpu_id AS device_id,
    g.reach_ns AS start_ns,
    g.idle_end_ns - g.reach_ns AS idle_ns,
    coalesce(d.event_id, g.before_event_id) AS before_event_id,
    b.name AS before_name,
    b.class AS before_class,
    g.event_id AS after_event_id,
    a.name AS after_name,
    a.class AS after_class,
    g.launched_ns AS after_launched_ns,
    CASE WHEN g.first_launched_ns <= g.reach_ns THEN true WHEN g.launched_ns IS NOT NULL THEN false END AS was_pending,
    CASE WHEN g.launched_ns IS NOT NULL
        THEN greatest(least(g.idle_end_ns, g.launched_ns) - g.reach_ns, 0)
    END AS unlaunched_ns
FROM gaps AS g
LEFT JOIN ends AS d ON d.clock_id = g.clock_id AND d.gap_no = g.event_id /* using d g */
LEFT JOIN kinds AS a ON a.kind_no = g.kind_no
LEFT JOIN kinds AS b ON b.kind_no = coalesce(d.kind_no, g.before_kind_no)
LEFT JOIN main.capture AS c ON c.capture_id = g.clock_id;

COMMENT ON VIEW v1.gpu_gaps IS 'Idle gaps of each GPU: the event before, the event after, and whether work was pending. Grain: idle interval of a device.';
COMMENT ON COLUMN v1.gpu_gaps.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN v1.gpu_gaps.rank IS 'Rank of the capture; NULL if unknown. [-]';
COMMENT ON COLUMN v1.gpu_gaps.labels IS 'Labels of the capture: sweep, threads, channels and others.';
COMMENT ON COLUMN v1.gpu_gaps.device_id IS 'Device number within the capture. [-]';
COMMENT ON COLUMN v1.gpu_gaps.start_ns IS 'Start of the gap, on the capture''s clock. [ns]';
COMMENT ON COLUMN v1.gpu_gaps.idle_ns IS 'Length of the gap. [ns]';
COMMENT ON COLUMN v1.gpu_gaps.before_event_id IS 'The last event to end before the gap (kernel_event.event_id). [-]';
COMMENT ON COLUMN v1.gpu_gaps.before_name IS 'Name of that event.';
COMMENT ON COLUMN v1.gpu_gaps.before_class IS 'Class of that event.';
COMMENT ON COLUMN v1.gpu_gaps.after_event_id IS 'The event that ends the gap (kernel_event.event_id). [-]';
COMMENT ON COLUMN v1.gpu_gaps.after_name IS 'Name of that event.';
COMMENT ON COLUMN v1.gpu_gaps.after_class IS 'Class of that event.';
COMMENT ON COLUMN v1.gpu_gaps.after_launched_ns IS 'When the call that launched that event returned, on the capture''s clock; NULL if not recorded. [ns]';
COMMENT ON COLUMN v1.gpu_gaps.was_pending IS 'Whether any launch of later work on the device had returned before the gap began; NULL if unknown: no recorded launch had, and that of the event that ends the gap was not recorded.';
COMMENT ON COLUMN v1.gpu_gaps.unlaunched_ns IS 'Part of the gap before the event that ends it was launched; NULL if its launch was not recorded. [ns]';
