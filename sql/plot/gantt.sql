-- GPU events as bars on their streams; each run starts at its first event. The first 40 streams, and on them the 5,000
-- longest events. If there are more, streams with less than a thousandth of their capture's time come last. Streams are
-- numbered after grouping: a window over all events takes five times as long.
-- Ranges of the program are rows with is_range, a lane for each thread and depth, above the streams of their capture: at
-- most 24 lanes, which fill a thousandth of the time drawn, and the 2,000 longest ranges that overlap it. Their times
-- convert as in v1.gpu_activity.
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
),
drawn_capture AS (
    SELECT
        l.capture_id,
        any_value(l.rank) AS rank,
        any_value(l.labels) AS labels,
        any_value(l.set_id) AS set_id,
        any_value(l.clock) AS clock,
        min(l.lane_place) AS lane_place,
        count(*) OVER () AS captures
    FROM longest AS l
    GROUP BY l.capture_id
),
extent AS (
    SELECT
        coalesce({from_ns}, min(l.since_ns)) AS from_ns,
        coalesce({to_ns}, max(l.since_ns + l.duration_ns)) AS to_ns
    FROM longest AS l
),
ranges AS (
    SELECT
        d.capture_id, r.annotation_id, d.rank, d.labels, d.set_id, r.process_id, r.thread_id, r.depth, r.name,
        r.duration_ns, d.clock, d.lane_place, d.captures,
        CASE WHEN k.clock <> 'incomparable' THEN
            r.start_ns + k.zero_ns - k.offset_ns
                - round((r.start_ns + k.zero_ns - k.offset_ns - k.at_ns) * k.stretch)::BIGINT
        ELSE r.start_ns END - o.zero_ns AS since_ns
    FROM {version}._range AS r
    INNER JOIN drawn_capture AS d ON d.capture_id = r.capture_id
    INNER JOIN origin AS o ON o.capture_id = r.capture_id
    INNER JOIN {version}._common_clock AS k ON k.capture_id = r.capture_id
    CROSS JOIN extent AS x
    WHERE r.duration_ns > 0 AND since_ns < x.to_ns AND since_ns + r.duration_ns > x.from_ns
),
range_lane AS (
    SELECT
        r.capture_id, r.process_id, r.thread_id, r.depth,
        sum(sum(r.duration_ns)) OVER thread AS thread_ns,
        count(*) OVER (PARTITION BY r.capture_id, r.depth) > 1
            OR min(r.thread_id) OVER capture <> max(r.thread_id) OVER capture AS has_threads,
        sum(r.duration_ns) < (any_value(x.to_ns) - any_value(x.from_ns)) / 1000 AS is_slight,
        any_value(r.captures) AS captures
    FROM ranges AS r
    CROSS JOIN extent AS x
    GROUP BY r.capture_id, r.process_id, r.thread_id, r.depth
    WINDOW
        capture AS (PARTITION BY r.capture_id),
        thread AS (PARTITION BY r.capture_id, r.process_id, r.thread_id)
),
placed_range AS (
    SELECT
        g.capture_id, g.process_id, g.thread_id, g.depth, g.has_threads,
        row_number() OVER (
            PARTITION BY g.capture_id ORDER BY g.is_slight, g.thread_ns DESC, g.process_id, g.thread_id, g.depth
        ) AS range_place,
        g.is_slight OR range_place > greatest(24 // g.captures, 1) AS is_left_out
    FROM range_lane AS g
),
longest_range AS (
    SELECT
        r.capture_id, r.annotation_id, r.rank, r.labels, r.set_id, r.name, r.duration_ns, r.clock, r.since_ns,
        r.lane_place, r.depth, p.range_place,
        'ranges' || CASE WHEN p.has_threads THEN ' of thread ' || coalesce(r.thread_id::VARCHAR, '?') ELSE '' END
            || CASE WHEN r.depth > 0 THEN ', depth ' || r.depth ELSE '' END AS lane
    FROM ranges AS r
    INNER JOIN placed_range AS p
        ON p.capture_id = r.capture_id
        AND p.process_id IS NOT DISTINCT FROM r.process_id
        AND p.thread_id IS NOT DISTINCT FROM r.thread_id
        AND p.depth IS NOT DISTINCT FROM r.depth
    WHERE NOT p.is_left_out
    ORDER BY r.duration_ns DESC, r.capture_id, r.annotation_id
    LIMIT 2000
),
drawn AS (
    SELECT
        l.capture_id, l.event_id, l.rank, l.labels, l.set_id, l.device_id, l.lane, l.lane_place, false AS is_range,
        NULL AS range_place, l.name, l.class, l.clock, l.since_ns, l.duration_ns
    FROM longest AS l
    UNION ALL
    SELECT
        r.capture_id, r.annotation_id, r.rank, r.labels, r.set_id, NULL, r.lane, r.lane_place, true,
        r.range_place, r.name, NULL, r.clock, r.since_ns, r.duration_ns
    FROM longest_range AS r
),
counted AS (
    SELECT
        sum(p.events)::BIGINT AS all_events,
        count(*) AS all_lanes,
        coalesce(sum(p.events) FILTER (p.lane_place > 40), 0)::BIGINT AS events_of_other_lanes,
        sum(p.total_ns) FILTER (p.lane_place <= 40) AS lanes_ns,
        (SELECT count(*) FROM ranges) AS all_ranges
    FROM placed AS p
)
SELECT
    d.capture_id, d.event_id, d.rank, d.labels, d.set_id, d.device_id, d.lane, d.lane_place, d.is_range, d.name, d.class,
    d.clock,
    d.since_ns,
    d.duration_ns,
    d.since_ns + d.duration_ns AS until_ns,
    c.all_events,
    greatest(c.all_lanes - 40, 0) AS other_lanes,
    c.events_of_other_lanes,
    c.all_events - c.events_of_other_lanes - count(*) FILTER (NOT d.is_range) OVER () AS shorter_events,
    100.0 * (c.lanes_ns - sum(d.duration_ns) FILTER (NOT d.is_range) OVER ()) / nullif(c.lanes_ns, 0) AS shorter_percent,
    min(d.duration_ns) FILTER (NOT d.is_range) OVER () AS shortest_ns,
    c.all_ranges
FROM drawn AS d
CROSS JOIN counted AS c
ORDER BY d.lane_place, NOT d.is_range, d.range_place, d.since_ns, d.event_id
