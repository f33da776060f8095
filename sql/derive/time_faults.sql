-- Marks the GPU events, calls and ranges of a capture with impossible times, and devices whose clocks are not aligned.
-- In:  {capture}: the capture; {ranges}: the table of its ranges, {of_capture}: the condition on them; main.time_bound.
--      No row has such a time_fault yet.
-- Out: time_fault in main.kernel_event, main.launch and {ranges}; rows of main.clock_fault.
-- Method: starts are grouped into stretches, separated by gaps longer than `far` without any start (`far_without_calls`
-- in a capture without API calls and operators). One stretch is the reference: the one with the calls; failing that,
-- the one with the most GPU events. A dispatch with counters, start 0 and zero duration has no time at all. Starts at 0
-- form a stretch of their own if they include no range and nothing else starts within `near_zero` after them,
-- because profilers write 0 for a missing time.
CREATE OR REPLACE TEMP TABLE time_limit AS
SELECT
    max(b.limit_ns) FILTER (b.name = 'before_launch') AS before_launch,
    max(b.limit_ns) FILTER (b.name = 'near_zero') AS near_zero,
    max(b.limit_ns) FILTER (b.name = 'after_launch') AS after_launch,
    CASE
        WHEN
            EXISTS (SELECT 1 FROM main.launch AS l WHERE l.capture_id = {capture})
            OR EXISTS (SELECT 1 FROM main.op AS o WHERE o.capture_id = {capture})
            THEN max(b.limit_ns) FILTER (b.name = 'far')
        ELSE max(b.limit_ns) FILTER (b.name = 'far_without_calls')
    END AS far,
    max(b.limit_ns) FILTER (b.name = 'far_without_calls') AS far_alone,
    max(b.limit_ns) FILTER (b.name = 'capture') AS capture
FROM main.time_bound AS b;

CREATE OR REPLACE TEMP TABLE time_stretch AS
WITH starts AS (
    SELECT 'event' AS of, e.start_ns
    FROM main.kernel_event AS e
    WHERE e.capture_id = {capture} AND e.time_fault IS NULL
        AND NOT (coalesce(e.is_counted, false) AND e.start_ns = 0 AND e.duration_ns = 0)
    UNION ALL
    SELECT 'call' AS of, l.start_ns FROM main.launch AS l WHERE l.capture_id = {capture} AND l.time_fault IS NULL
    UNION ALL
    SELECT 'call' AS of, o.start_ns FROM main.op AS o WHERE o.capture_id = {capture}
    UNION ALL
    SELECT 'range' AS of, a.start_ns FROM {ranges} AS a WHERE {of_capture} AND a.time_fault IS NULL
),
buckets AS (
    SELECT
        s.start_ns // t.far - (s.start_ns % t.far < 0)::INTEGER AS bucket,
        min(s.start_ns) AS first_ns,
        max(s.start_ns) AS last_ns,
        count(*) FILTER (s.of = 'event') AS events,
        count(*) FILTER (s.of = 'call') AS calls,
        count(*) FILTER (s.of = 'range') AS ranges
    FROM starts AS s
    CROSS JOIN time_limit AS t
    GROUP BY bucket, s.start_ns = 0
),
edges AS (
    SELECT
        b.first_ns, b.last_ns, b.events, b.calls, b.ranges,
        b.first_ns::HUGEINT - lag(b.last_ns) OVER ordered
        > CASE WHEN lag(b.last_ns = 0 AND b.ranges = 0) OVER ordered THEN t.near_zero ELSE t.far END
        AS is_first
    FROM buckets AS b
    CROSS JOIN time_limit AS t
    WINDOW ordered AS (ORDER BY b.first_ns)
),
numbered AS (
    SELECT
        e.first_ns, e.last_ns, e.events, e.calls, e.ranges,
        count(*) FILTER (e.is_first) OVER (ORDER BY e.first_ns) AS stretch
    FROM edges AS e
)
SELECT
    n.stretch,
    min(n.first_ns) AS first_ns,
    max(n.last_ns) AS last_ns,
    sum(n.events) AS events,
    sum(n.calls) AS calls,
    sum(n.ranges) AS ranges,
    min(n.first_ns) = 0 AND max(n.last_ns) = 0 AS is_zero
FROM numbered AS n
GROUP BY n.stretch;

-- Which stretches are marked: for GPU events (is_false_event), and for calls and ranges (is_false_call).
CREATE OR REPLACE TEMP TABLE time_verdict AS
WITH trusted AS (
    SELECT
        arg_min(s.stretch, (s.is_zero, s.calls = 0, -s.events, -s.first_ns::HUGEINT)) FILTER (s.events > 0) AS of_events
    FROM time_stretch AS s
),
pair AS (
    SELECT
        t.of_events,
        (SELECT arg_min(
            s.stretch,
            (s.is_zero, s.stretch IS DISTINCT FROM t.of_events, -(s.calls + s.ranges), -s.first_ns::HUGEINT)
        ) FILTER (s.calls + s.ranges > 0) FROM time_stretch AS s) AS of_calls
    FROM trusted AS t
),
distances AS (
    SELECT
        s.stretch, s.first_ns, s.last_ns, s.events, s.calls, s.ranges, s.is_zero,
        s.stretch = e.stretch AND NOT (s.is_zero AND count(*) OVER () > 1) AS is_trusted_event,
        greatest(s.first_ns::HUGEINT - e.last_ns, e.first_ns::HUGEINT - s.last_ns) AS to_events_ns,
        e.calls > 0 AS has_trusted_calls,
        s.stretch = c.stretch AS is_trusted_call,
        greatest(s.first_ns::HUGEINT - c.last_ns, c.first_ns::HUGEINT - s.last_ns) AS to_calls_ns
    FROM time_stretch AS s
    CROSS JOIN pair AS b
    LEFT JOIN time_stretch AS e ON e.stretch = b.of_events
    LEFT JOIN time_stretch AS c ON c.stretch = b.of_calls
)
SELECT
    d.stretch, d.first_ns, d.last_ns,
    coalesce(d.events > 0 AND NOT d.is_trusted_event AND (
        d.is_zero
        OR d.to_events_ns > t.capture
        OR (d.calls = 0 AND (d.has_trusted_calls OR d.to_events_ns > t.far_alone))
    ), false) AS is_false_event,
    coalesce(d.calls + d.ranges > 0 AND NOT d.is_trusted_call AND (
        d.is_zero
        OR d.to_calls_ns > t.capture
        OR (d.events = 0 AND d.to_calls_ns > t.far_alone)
    ), false) AS is_false_call
FROM distances AS d
CROSS JOIN time_limit AS t;

UPDATE main.kernel_event AS e SET time_fault = 'far_from_others'
FROM time_verdict AS v
WHERE e.capture_id = {capture} AND v.is_false_event AND e.start_ns BETWEEN v.first_ns AND v.last_ns
    AND e.time_fault IS NULL AND NOT (coalesce(e.is_counted, false) AND e.start_ns = 0 AND e.duration_ns = 0);

UPDATE main.launch AS l SET time_fault = 'far_from_others'
FROM time_verdict AS v
WHERE l.capture_id = {capture} AND v.is_false_call AND l.start_ns BETWEEN v.first_ns AND v.last_ns
    AND l.time_fault IS NULL;

UPDATE {ranges} AS a SET time_fault = 'far_from_others'
FROM time_verdict AS v
WHERE {of_capture} AND v.is_false_call AND a.start_ns BETWEEN v.first_ns AND v.last_ns AND a.time_fault IS NULL;

-- The last plausible time: a start, or the end of a call or range of plausible length.
CREATE OR REPLACE TEMP TABLE time_last AS
SELECT max(f.last_ns) AS last_ns
FROM (
    SELECT max(e.start_ns)::HUGEINT AS last_ns
    FROM main.kernel_event AS e
    WHERE e.capture_id = {capture} AND e.time_fault IS NULL
    UNION ALL
    SELECT max(l.start_ns::HUGEINT + CASE WHEN l.duration_ns <= t.far_alone THEN l.duration_ns ELSE 0 END)
    FROM main.launch AS l
    CROSS JOIN time_limit AS t
    WHERE l.capture_id = {capture} AND l.time_fault IS NULL
    UNION ALL
    SELECT max(a.start_ns::HUGEINT + CASE WHEN a.duration_ns <= t.far_alone THEN a.duration_ns ELSE 0 END)
    FROM {ranges} AS a
    CROSS JOIN time_limit AS t
    WHERE {of_capture} AND a.time_fault IS NULL
) AS f;

UPDATE main.kernel_event AS e SET time_fault = 'too_long'
FROM time_last AS z, time_limit AS t
WHERE e.capture_id = {capture} AND e.time_fault IS NULL AND e.start_ns::HUGEINT + e.duration_ns > z.last_ns + t.far;

UPDATE main.launch AS l SET time_fault = 'too_long'
FROM time_last AS z, time_limit AS t
WHERE l.capture_id = {capture} AND l.time_fault IS NULL
    AND l.start_ns::HUGEINT + l.duration_ns > z.last_ns + t.far_alone;

UPDATE {ranges} AS a SET time_fault = 'too_long'
FROM time_last AS z, time_limit AS t
WHERE {of_capture} AND a.time_fault IS NULL AND a.start_ns::HUGEINT + a.duration_ns > z.last_ns + t.far_alone;

-- If events of a device start before their calls, or all of them long after, its clock is not aligned. But if at least
-- one in 20 starts after its call, and a gap separates the delays of these from the early ones (wider than
-- `before_launch` and four times the median distance of sorted delays), the clock is aligned and the early events have
-- false times; so they do if fewer than one in 20 are early. Without a gap, delays change gradually: a clock that drifts,
-- or one that is behind by less than kernels wait.
DELETE FROM main.clock_fault AS f WHERE f.capture_id = {capture};

INSERT INTO main.clock_fault BY NAME
WITH delays AS (
    SELECT
        e.device_id,
        e.start_ns::HUGEINT - l.start_ns AS delay_ns,
        delay_ns < -t.before_launch AS is_early,
        t.before_launch,
        t.after_launch
    FROM main.kernel_event AS e
    INNER JOIN main.launch AS l ON l.capture_id = e.capture_id AND l.launch_id = e.launch_id AND l.time_fault IS NULL
    CROSS JOIN time_limit AS t
    WHERE e.capture_id = {capture} AND l.capture_id = {capture} AND e.time_fault IS NULL
),
spaced AS (
    SELECT d.*, d.delay_ns - lag(d.delay_ns) OVER (PARTITION BY d.device_id ORDER BY d.delay_ns) AS space_ns
    FROM delays AS d
)
SELECT
    {capture}::INTEGER AS capture_id,
    d.device_id,
    (sum(d.delay_ns) // count(*))::BIGINT AS offset_ns,
    count(*) AS events
FROM spaced AS d
GROUP BY d.device_id
HAVING (
    20 * count(*) FILTER (d.is_early) >= count(*)
    AND NOT coalesce(
        20 * count(*) FILTER (NOT d.is_early) >= count(*)
        AND min(d.delay_ns) FILTER (NOT d.is_early) - max(d.delay_ns) FILTER (d.is_early)
        > greatest(max(d.before_launch), 4 * median(d.space_ns)), false
    )
)
OR min(d.delay_ns) > max(d.after_launch);

UPDATE main.kernel_event AS e
SET time_fault = CASE WHEN e.start_ns < l.start_ns THEN 'before_launch' ELSE 'after_launch' END
FROM main.launch AS l, time_limit AS t
WHERE e.capture_id = {capture} AND e.time_fault IS NULL
    AND l.capture_id = {capture} AND l.launch_id = e.launch_id AND l.time_fault IS NULL
    AND e.start_ns::HUGEINT - l.start_ns NOT BETWEEN -t.before_launch AND t.far
    AND NOT EXISTS (
        SELECT 1 FROM main.clock_fault AS f
        WHERE f.capture_id = {capture} AND f.device_id IS NOT DISTINCT FROM e.device_id
    );

DROP TABLE temp.time_limit;
DROP TABLE temp.time_stretch;
DROP TABLE temp.time_verdict;
DROP TABLE temp.time_last;
