-- The issues of a capture whose times were checked, as rows of main.ingest_issue.
-- In:  {capture}, {ranges}, {of_capture} as in time_faults.sql. Out: rows (code, events, detail).
WITH marked AS (
    SELECT
        e.time_fault, 'GPU events' AS noun, count(*) AS events,
        ' of ' || (SELECT count(*) FROM main.kernel_event AS k WHERE k.capture_id = {capture}) AS total,
        min(e.start_ns) AS first_ns, max(e.duration_ns) AS longest_ns
    FROM main.kernel_event AS e
    WHERE e.capture_id = {capture} AND e.time_fault IS NOT NULL
    GROUP BY e.time_fault
    UNION ALL
    SELECT l.time_fault, 'API calls' AS noun, count(*), '' AS total, min(l.start_ns), max(l.duration_ns)
    FROM main.launch AS l
    WHERE l.capture_id = {capture} AND l.time_fault IS NOT NULL
    GROUP BY l.time_fault
    UNION ALL
    SELECT a.time_fault, 'ranges' AS noun, count(*), '' AS total, min(a.start_ns), max(a.duration_ns)
    FROM {ranges} AS a
    WHERE {of_capture} AND a.time_fault IS NOT NULL
    GROUP BY a.time_fault
),
words AS (
    SELECT
        m.time_fault,
        m.events,
        m.events || m.total || ' ' || CASE WHEN m.events = 1 AND m.total = '' THEN rtrim(m.noun, 's') ELSE m.noun END
        || CASE m.time_fault
            WHEN 'far_from_others' THEN ' far from all others (the first starts at ' || m.first_ns || ' ns)'
            WHEN 'too_long' THEN format(' ending long after all else (the longest lasts {:.1f} h)', m.longest_ns / 3.6e12)
            WHEN 'before_launch' THEN (
                SELECT format(' starting more than {:g} ms before the call that launched them', b.limit_ns / 1e6)
                FROM main.time_bound AS b
                WHERE b.name = 'before_launch'
            )
            WHEN 'after_launch' THEN (
                SELECT format(' starting more than {:g} h after the call that launched them', b.limit_ns / 3.6e12)
                FROM main.time_bound AS b
                WHERE b.name = 'far'
            )
        END AS said
    FROM marked AS m
    WHERE m.time_fault IN ('far_from_others', 'too_long', 'before_launch', 'after_launch')
)
SELECT
    'time_' || w.time_fault AS code,
    w.events,
    w.said || ': left out of spans, sums, gaps and averages; column time_fault marks them, table time_bound has '
        || 'the bounds' AS detail
FROM words AS w
UNION ALL
SELECT
    'clocks_apart' AS code,
    sum(f.events)::BIGINT AS events,
    format(
        'GPU events start {:.3f} s {} the calls that launched them: their clocks lie apart, and times between calls and '
        || 'kernels are not known (launch latency, queue depth, why a GPU idles); table time_bound has the bounds',
        abs(any_value(f.offset_ns)) / 1e9, CASE WHEN any_value(f.offset_ns) < 0 THEN 'before' ELSE 'after' END
    ) AS detail
FROM main.clock_fault AS f
WHERE f.capture_id = {capture}
HAVING count(*) > 0
ORDER BY code, detail;
