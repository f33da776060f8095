-- Every GPU event with how long its device, on which nothing ran, idled up to it, and how long all devices of its capture
-- did.
-- Grain: row of v1._gpu_event. Where a report chooses or groups events of a device (--class, --range, --skip-warmup, --by
-- step or range), the text of this view replaces v1._gpu_event: the work that is left out is not idle time. Idle time
-- belongs to the event that ends it. It ends where graph replays that were not recorded may have run.
CREATE VIEW v1._reached_event AS
WITH reaches AS (
    SELECT
        e.*,
        max(e.end_ns) OVER earlier AS reach_ns,
        max(e.end_ns) OVER earlier_anywhere AS capture_reach_ns,
        min(l.start_ns) OVER later AS next_launch_ns
    FROM v1._gpu_event AS e
    LEFT JOIN v1._timed_launch AS l ON l.capture_id = e.capture_id AND l.launch_id = e.launch_id
    WINDOW
        earlier AS (
            PARTITION BY e.capture_id, e.device_id
            ORDER BY e.start_ns, e.event_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ),
        earlier_anywhere AS (
            PARTITION BY e.capture_id ORDER BY e.start_ns, e.event_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ),
        later AS (
            PARTITION BY e.capture_id, e.device_id
            ORDER BY e.start_ns, e.event_id ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING
        )
)
SELECT
    h.*,
    greatest(least(h.start_ns, u.start_ns) - h.reach_ns, 0) AS idle_before_ns,
    greatest(h.start_ns - h.capture_reach_ns, 0) AS capture_idle_before_ns
FROM reaches AS h
LEFT JOIN main.unrecorded_span AS u
    ON u.capture_id = h.capture_id AND u.device_id IS NOT DISTINCT FROM h.device_id AND u.end_ns = h.start_ns;
