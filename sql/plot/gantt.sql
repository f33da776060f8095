-- GPU events as bars on their streams, runs from the start of their first event: the 40 first streams, and on them the
-- 5,000 longest events.
-- In:  answer: rows of v1.gpu_activity, with its column step where a step is chosen. {place}: order of captures.
--      {step}: number of a step, or NULL. {from_ns}, {to_ns}: window since the first event of a run, or NULL.
WITH chosen AS (
    SELECT
        a.capture_id, a.event_id, a.rank, a.labels, a.set_id, a.device_id, a.lane, a.lane_number, a.name, a.class,
        a.duration_ns, a.clock,
        coalesce(a.common_start_ns, a.start_ns) - min(coalesce(a.common_start_ns, a.start_ns)) OVER (
            PARTITION BY a.set_id, CASE WHEN a.clock = 'incomparable' THEN a.capture_id END
        ) AS since_ns
    FROM answer AS a
    WHERE {in_step}
),
windowed AS (
    SELECT
        c.capture_id, c.event_id, c.rank, c.labels, c.set_id, c.device_id, c.lane, c.lane_number, c.name, c.class,
        c.duration_ns, c.clock, c.since_ns,
        dense_rank() OVER (
            ORDER BY {place}, c.set_id, c.capture_id, c.device_id, c.lane_number NULLS LAST, c.lane NULLS LAST
        ) AS lane_place
    FROM chosen AS c
    WHERE ({from_ns} IS NULL OR c.since_ns + c.duration_ns > {from_ns}) AND ({to_ns} IS NULL OR c.since_ns < {to_ns})
),
counted AS (
    SELECT
        w.capture_id, w.event_id, w.rank, w.labels, w.set_id, w.device_id, w.lane, w.name, w.class, w.duration_ns,
        w.clock, w.since_ns, w.lane_place,
        row_number() OVER (
            PARTITION BY w.lane_place > 40 ORDER BY w.duration_ns DESC, w.capture_id, w.event_id
        ) AS duration_place,
        count(*) OVER () AS all_events,
        max(w.lane_place) OVER () AS all_lanes,
        count(*) FILTER (w.lane_place > 40) OVER () AS events_of_other_lanes,
        sum(w.duration_ns) FILTER (w.lane_place <= 40) OVER () AS lanes_ns
    FROM windowed AS w
)
SELECT
    d.capture_id, d.event_id, d.rank, d.labels, d.set_id, d.device_id, d.lane, d.lane_place, d.name, d.class,
    d.clock,
    d.since_ns,
    d.duration_ns,
    d.since_ns + d.duration_ns AS until_ns,
    d.all_events,
    greatest(d.all_lanes - 40, 0) AS other_lanes,
    d.events_of_other_lanes,
    d.all_events - d.events_of_other_lanes - count(*) OVER () AS shorter_events,
    100.0 * (d.lanes_ns - sum(d.duration_ns) OVER ()) / nullif(d.lanes_ns, 0) AS shorter_percent,
    min(d.duration_ns) OVER () AS shortest_ns
FROM counted AS d
WHERE d.lane_place <= 40 AND d.duration_place <= 5000
ORDER BY d.lane_place, d.since_ns, d.event_id
