-- When is a GPU idle, between which events, and was work launched in time?
-- Grain: idle interval of a device between its first and last GPU event. Method: one ordered pass; a gap opens if an
-- event starts after the latest end so far. Work was pending if the launch of any later event had returned before the
-- gap began: then the GPU waited for something else (another stream, a copy, an event), not for the CPU. If none had,
-- but the launch of the event that ends the gap was not recorded, it is unknown.
CREATE VIEW v1.gpu_gaps AS
WITH events AS (
    SELECT
        /* by e */
        e.capture_id AS clock_id,
        e.device_id AS gpu_id,
        e.event_id,
        e.name,
        e.class,
        e.start_ns,
        e.end_ns,
        l.start_ns + l.duration_ns AS launched_ns,
        /* whole */ NULL::BIGINT /* part e.reach_ns */ AS device_reach_ns
    FROM v1._gpu_event AS e /* join e */
    LEFT JOIN v1._timed_launch AS l ON l.capture_id = e.capture_id AND l.launch_id = e.launch_id
    WHERE true /* filter e */
),
reaches AS (
    SELECT
        /* by */
        clock_id, gpu_id, event_id, start_ns,
        /* whole */ max(end_ns) OVER earlier /* part CASE WHEN max(end_ns) OVER earlier IS NOT NULL THEN device_reach_ns END */
            AS reach_ns,
        min(launched_ns) OVER later AS first_launched_ns
    FROM events
    WINDOW
        earlier AS (
            PARTITION BY /* by */ clock_id, gpu_id
            ORDER BY start_ns, event_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ),
        later AS (
            PARTITION BY /* by */ clock_id, gpu_id
            ORDER BY start_ns, event_id ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING
        )
),
-- A gap ends where graph replays that were not recorded may have run.
gaps AS (
    SELECT
        /* by h */ h.clock_id, h.gpu_id, h.event_id, h.start_ns, h.reach_ns, h.first_launched_ns,
        least(h.start_ns, u.start_ns) AS idle_end_ns
    FROM reaches AS h
    LEFT JOIN main.unrecorded_span AS u
        ON u.capture_id = h.clock_id AND u.device_id IS NOT DISTINCT FROM h.gpu_id AND u.end_ns = h.start_ns
    WHERE least(h.start_ns, u.start_ns) > h.reach_ns
),
-- The event that ended last before a gap; if several ended at the same time, the one with the highest number.
ends AS (
    SELECT /* by g */ g.clock_id, g.gpu_id, g.event_id AS gap_no, max(e.event_id) AS event_id
    FROM gaps AS g
    INNER JOIN events AS e
        ON e.clock_id = g.clock_id AND e.gpu_id IS NOT DISTINCT FROM g.gpu_id AND e.end_ns = g.reach_ns /* using e g */
    GROUP BY /* by g */ g.clock_id, g.gpu_id, g.event_id
)
SELECT
    /* by g */
    g.clock_id AS capture_id,
    c.rank,
    c.labels,
    g.gpu_id AS device_id,
    g.reach_ns AS start_ns,
    g.idle_end_ns - g.reach_ns AS idle_ns,
    b.event_id AS before_event_id,
    b.name AS before_name,
    b.class AS before_class,
    a.event_id AS after_event_id,
    a.name AS after_name,
    a.class AS after_class,
    a.launched_ns AS after_launched_ns,
    CASE WHEN g.first_launched_ns <= g.reach_ns THEN true WHEN a.launched_ns IS NOT NULL THEN false END AS was_pending,
    CASE WHEN a.launched_ns IS NOT NULL
        THEN greatest(least(g.idle_end_ns, a.launched_ns) - g.reach_ns, 0)
    END AS unlaunched_ns
FROM gaps AS g
INNER JOIN events AS a ON a.clock_id = g.clock_id AND a.event_id = g.event_id /* using a g */
LEFT JOIN ends AS d ON d.clock_id = g.clock_id AND d.gap_no = g.event_id /* using d g */
LEFT JOIN events AS b ON b.clock_id = d.clock_id AND b.event_id = d.event_id /* using b d */
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
