-- GPU events as bars on their streams; each run starts at its first event. The first 40 streams, and on them the 5,000
-- longest events. If there are more, streams with less than a thousandth of their capture's time come last. Streams are
-- numbered after grouping: a window over all events takes five times as long.
-- In:  answer: rows of v1.gpu_activity, with its column step if a step is selected. {place}: order of captures. {step}:
--      number of a step, or NULL. {from_ns}, {to_ns}: window since the first event of a run, or NULL.
WITH chosen AS (
    SELECT
        a.capture_id, a.event_id, a.rank, a.labels, a.set_id, a.device_id, a.lane, a.lane_number, a.name, a.class,
        a.duration_ns, a.clock,
        coalesce(a.common_start_ns, a.start_ns) AS begin_ns
    FROM answer AS a
    WHERE {in_step}
),
span AS (
    SELECT
        c.set_id, c.capture_id,
        bool_or(c.clock = 'incomparable') AS is_incomparable,
        bool_or(c.rank IS NOT NULL) AS has_rank,
        min(c.begin_ns) AS first_ns,
        max(c.begin_ns + c.duration_ns) AS last_ns
    FROM chosen AS c
    GROUP BY c.set_id, c.capture_id
),
origin AS (
    SELECT
        s.capture_id,
        bool_or(s.is_incomparable) OVER run
            OR NOT bool_or(s.has_rank) OVER run
            AND max(s.last_ns) OVER run - min(s.first_ns) OVER run > 3 * sum(s.last_ns - s.first_ns) OVER run AS is_apart,
        CASE WHEN is_apart THEN s.first_ns ELSE min(s.first_ns) OVER run END AS zero_ns
    FROM span AS s
    WINDOW run AS (PARTITION BY s.set_id)
),
windowed AS (
    SELECT
        c.capture_id, c.event_id, c.rank, c.labels, c.set_id, c.device_id, c.lane, c.lane_number, c.name, c.class,
        c.duration_ns,
        CASE WHEN o.is_apart THEN 'incomparable' ELSE c.clock END AS clock,
        c.begin_ns - o.zero_ns AS since_ns
    FROM chosen AS c
    INNER JOIN origin AS o ON o.capture_id = c.capture_id
    WHERE ({from_ns} IS NULL OR since_ns + c.duration_ns > {from_ns}) AND ({to_ns} IS NULL OR since_ns < {to_ns})
),
grouped AS (
    SELECT
        w.capture_id, w.device_id, w.lane, w.lane_number,
        any_value(w.set_id) AS set_id,
        any_value(w.rank) AS rank,
        any_value(w.labels) AS labels,
        count(*) AS events,
        sum(w.duration_ns) AS total_ns
    FROM windowed AS w
    GROUP BY w.capture_id, w.device_id, w.lane, w.lane_number
),
weighed AS (
    SELECT
        g.capture_id, g.device_id, g.lane, g.lane_number, g.set_id, g.rank, g.labels, g.events, g.total_ns,
        count(*) OVER () > 40
            AND g.total_ns < sum(g.total_ns) OVER (PARTITION BY g.capture_id) / 1000 AS is_slight
    FROM grouped AS g
),
placed AS (
    SELECT
        g.capture_id, g.device_id, g.lane, g.lane_number, g.events, g.total_ns,
        row_number() OVER (
            ORDER BY g.is_slight, {place}, g.set_id, g.capture_id, g.device_id, g.lane_number NULLS LAST, g.lane NULLS LAST
        ) AS lane_place
    FROM weighed AS g
),
counted AS (
    SELECT
        sum(p.events)::BIGINT AS all_events,
        count(*) AS all_lanes,
        coalesce(sum(p.events) FILTER (p.lane_place > 40), 0)::BIGINT AS events_of_other_lanes,
        sum(p.total_ns) FILTER (p.lane_place <= 40) AS lanes_ns
    FROM placed AS p
),
longest AS (
    SELECT
        w.capture_id, w.event_id, w.rank, w.labels, w.set_id, w.device_id, w.lane, w.name, w.class, w.duration_ns,
        w.clock, w.since_ns, p.lane_place
    FROM windowed AS w
    INNER JOIN placed AS p
        ON p.capture_id = w.capture_id
        AND p.device_id IS NOT DISTINCT FROM w.device_id
        AND p.lane IS NOT DISTINCT FROM w.lane
        AND p.lane_number IS NOT DISTINCT FROM w.lane_number
    WHERE p.lane_place <= 40
    ORDER BY w.duration_ns DESC, w.capture_id, w.event_id
    LIMIT 5000
)
SELECT
    d.capture_id, d.event_id, d.rank, d.labels, d.set_id, d.device_id, d.lane, d.lane_place, d.name, d.class,
    d.clock,
    d.since_ns,
    d.duration_ns,
    d.since_ns + d.duration_ns AS until_ns,
    c.all_events,
    greatest(c.all_lanes - 40, 0) AS other_lanes,
    c.events_of_other_lanes,
    c.all_events - c.events_of_other_lanes - count(*) OVER () AS shorter_events,
    100.0 * (c.lanes_ns - sum(d.duration_ns) OVER ()) / nullif(c.lanes_ns, 0) AS shorter_percent,
    min(d.duration_ns) OVER () AS shortest_ns
FROM longest AS d
CROSS JOIN counted AS c
ORDER BY d.lane_place, d.since_ns, d.event_id
