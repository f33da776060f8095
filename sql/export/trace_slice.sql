-- Selects the slices of an exported timeline and converts them to the clock of the file.
-- In:  temp table selected_capture; variables trace_aligned (whether clocks are corrected by main.clock_alignment),
--      trace_part (whether filters exclude GPU events), trace_gpu_only.
-- Out: temp tables trace_event (a GPU event that is shown), trace_bound (per capture: the plausible times of rows that
--      have no time_fault), trace_clock (per capture: how its clock is converted to the file's, whose zero is base_ns),
--      trace_slice (n, capture_id, kind, row_id, place, start_ns, end_ns): a slice of the file, in ns since base_ns.
-- If filters select GPU events, CPU rows are those between the first launch and the last end of the selected events.
-- Open ranges last until the end of their capture. Rows with a time_fault are excluded: a single one would stretch the
-- timeline to years. So are operators and allocator events, which have none, further than the longest plausible capture
-- from all that has one.
-- The common clock is that of v1._collective_instance. GPU events keep their recorded duration; starts and ends of CPU
-- rows are moved alike, so that nested rows stay nested if a clock is stretched for drift. Of clocks that cannot be
-- compared, those without a zero start with the first of the others, and with each other if none has one.
CREATE OR REPLACE TEMP TABLE trace_event AS
SELECT
    e.capture_id, e.event_id, e.device_id, e.context_id, e.stream_id, e.queue_id, e.launch_id, e.op_id,
    e.correlation_id, e.start_ns, e.end_ns
FROM v1._unclassed_event AS e /* join e */
WHERE true /* filter e */;

CREATE OR REPLACE TEMP TABLE trace_bound AS
WITH trusted AS (
    SELECT e.capture_id, min(e.start_ns) AS first_ns, max(e.end_ns) AS last_ns
    FROM temp.trace_event AS e
    GROUP BY e.capture_id
    UNION ALL
    SELECT l.capture_id, min(l.start_ns), max(l.start_ns + l.duration_ns)
    FROM main.launch AS l
    WHERE l.time_fault IS NULL
    GROUP BY l.capture_id
    UNION ALL
    SELECT r.capture_id, min(r.start_ns), max(r.start_ns + coalesce(r.duration_ns, 0))
    FROM main.annotation AS r
    WHERE r.time_fault IS NULL
    GROUP BY r.capture_id
)

SELECT
    t.capture_id,
    greatest(min(t.first_ns)::HUGEINT - any_value(l.longest_ns), -9223372036854775807)::BIGINT AS from_ns,
    least(max(t.last_ns)::HUGEINT + any_value(l.longest_ns), 9223372036854775807)::BIGINT AS to_ns
FROM trusted AS t
CROSS JOIN (SELECT max(b.limit_ns) FILTER (b.name = 'capture') AS longest_ns FROM main.time_bound AS b) AS l
GROUP BY t.capture_id;

CREATE OR REPLACE TEMP TABLE trace_row AS
WITH spans AS (
    SELECT
        e.capture_id,
        min(least(e.start_ns, coalesce(l.start_ns, e.start_ns))) AS from_ns,
        max(e.end_ns) AS to_ns
    FROM temp.trace_event AS e
    LEFT JOIN main.launch AS l
        ON l.capture_id = e.capture_id AND l.launch_id = e.launch_id AND l.time_fault IS NULL
    GROUP BY e.capture_id
),

parts AS (
    SELECT
        c.capture_id,
        CASE WHEN getvariable('trace_part') THEN s.from_ns ELSE -9223372036854775807 END AS from_ns,
        CASE WHEN getvariable('trace_part') THEN s.to_ns ELSE 9223372036854775807 END AS to_ns
    FROM temp.selected_capture AS c
    LEFT JOIN spans AS s ON s.capture_id = c.capture_id
),

-- Two scans take less than a copy.
ops AS NOT MATERIALIZED (
    SELECT o.capture_id, o.op_id, o.process_id, o.thread_id, o.start_ns, o.start_ns + o.duration_ns AS end_ns
    FROM main.op AS o
    LEFT JOIN temp.trace_bound AS b ON b.capture_id = o.capture_id
    WHERE
        o.start_ns >= coalesce(b.from_ns, o.start_ns)
        AND o.duration_ns <= coalesce(b.to_ns::HUGEINT - o.start_ns, o.duration_ns)
),

lasts AS (
    SELECT capture_id, max(last_ns) AS last_ns
    FROM (
        SELECT e.capture_id, max(e.end_ns) AS last_ns
        FROM temp.trace_event AS e
        GROUP BY e.capture_id
        UNION ALL
        SELECT r.capture_id, max(r.start_ns + coalesce(r.duration_ns, 0))
        FROM main.annotation AS r
        WHERE r.time_fault IS NULL
        GROUP BY r.capture_id
        UNION ALL
        SELECT o.capture_id, max(o.end_ns)
        FROM ops AS o
        GROUP BY o.capture_id
    )
    GROUP BY capture_id
),

cpu AS (
    SELECT
        r.capture_id,
        CASE WHEN r.style = 'gpu_projection' THEN 'projection' ELSE 'range' END AS kind,
        r.annotation_id AS row_id,
        r.process_id, r.thread_id, r.device_id, r.stream_id,
        r.start_ns,
        CASE WHEN r.is_open THEN greatest(z.last_ns, r.start_ns) ELSE r.start_ns + coalesce(r.duration_ns, 0) END AS end_ns
    FROM main.annotation AS r
    LEFT JOIN lasts AS z ON z.capture_id = r.capture_id
    WHERE r.time_fault IS NULL
    UNION ALL
    SELECT
        o.capture_id, 'op', o.op_id, o.process_id, o.thread_id, NULL, NULL, o.start_ns, o.end_ns
    FROM ops AS o
    UNION ALL
    SELECT
        l.capture_id, 'launch', l.launch_id, l.process_id, l.thread_id, NULL, NULL, l.start_ns, l.start_ns + l.duration_ns
    FROM main.launch AS l
    WHERE l.time_fault IS NULL
)

SELECT
    e.capture_id, 'gpu' AS kind, e.event_id AS row_id,
    NULL AS process_id, NULL AS thread_id, e.device_id, e.context_id, e.stream_id, e.queue_id,
    e.start_ns, e.end_ns
FROM temp.trace_event AS e
UNION ALL
SELECT
    c.capture_id, c.kind, c.row_id,
    c.process_id, c.thread_id, c.device_id, NULL, c.stream_id, NULL,
    c.start_ns, c.end_ns
FROM cpu AS c
INNER JOIN parts AS p ON p.capture_id = c.capture_id
WHERE NOT getvariable('trace_gpu_only') AND c.end_ns >= p.from_ns AND c.start_ns <= p.to_ns;

CREATE OR REPLACE TEMP TABLE trace_clock AS
WITH known AS (
    SELECT
        c.capture_id,
        c.clock_zero_unix_ns,
        a.reference_capture_id,
        coalesce(a.at_ns, 0) AS at_ns,
        coalesce(a.offset_ns, 0) AS offset_ns,
        CASE WHEN a.uses_drift THEN a.drift_ppm / 1e6 / (1 + a.drift_ppm / 1e6) ELSE 0 END AS stretch
    FROM temp.selected_capture AS c
    LEFT JOIN main.clock_alignment AS a ON a.capture_id = c.capture_id AND getvariable('trace_aligned')
    WHERE c.capture_id IN (SELECT r.capture_id FROM temp.trace_row AS r)
),

firsts AS (
    SELECT capture_id, min(first_ns) AS first_ns
    FROM (
        SELECT r.capture_id, min(r.start_ns) AS first_ns
        FROM temp.trace_row AS r
        GROUP BY r.capture_id
        UNION ALL
        SELECT m.capture_id, min(m.start_ns)
        FROM main.memory_event AS m
        INNER JOIN temp.trace_bound AS b ON b.capture_id = m.capture_id
        WHERE NOT getvariable('trace_part') AND m.start_ns BETWEEN b.from_ns AND b.to_ns
        GROUP BY m.capture_id
    )
    GROUP BY capture_id
),

ends AS (
    SELECT r.capture_id, max(r.end_ns) AS last_ns
    FROM temp.trace_row AS r
    GROUP BY r.capture_id
),

-- Clocks without a zero are taken for one clock, that of the machine, if all captures overlap on it.
kinds AS (
    SELECT
        count(k.clock_zero_unix_ns) = count(*)
            OR count(k.clock_zero_unix_ns) = 0 AND max(f.first_ns) <= min(z.last_ns)
            OR count(k.reference_capture_id) = count(*) AND min(k.reference_capture_id) = max(k.reference_capture_id)
            AS is_comparable
    FROM known AS k
    INNER JOIN firsts AS f ON f.capture_id = k.capture_id
    INNER JOIN ends AS z ON z.capture_id = k.capture_id
),

-- In 128 bits: the times of captures far apart do not fit into 64, though their places on the timeline do.
shifts AS (
    SELECT
        k.capture_id, k.clock_zero_unix_ns, k.at_ns, k.stretch,
        coalesce(k.clock_zero_unix_ns, 0)::HUGEINT - k.offset_ns AS shift_ns
    FROM known AS k
),

moved AS (
    SELECT
        k.capture_id, k.clock_zero_unix_ns, k.at_ns, k.stretch, x.is_comparable, k.shift_ns,
        f.first_ns + k.shift_ns
            - round((f.first_ns + k.shift_ns - k.at_ns) * k.stretch)::HUGEINT AS first_ns
    FROM shifts AS k
    CROSS JOIN kinds AS x
    INNER JOIN firsts AS f ON f.capture_id = k.capture_id
),

-- If clocks cannot be compared, those without a zero start with the first of the others, or of all if none has one.
placed AS (
    SELECT
        capture_id, clock_zero_unix_ns, at_ns, stretch, is_comparable,
        CASE
            WHEN is_comparable OR clock_zero_unix_ns IS NOT NULL THEN shift_ns
            ELSE shift_ns - first_ns + coalesce(
                min(first_ns) FILTER (clock_zero_unix_ns IS NOT NULL) OVER (), min(first_ns) OVER ()
            )
        END AS shift_ns,
        CASE
            WHEN is_comparable OR clock_zero_unix_ns IS NOT NULL THEN first_ns
            ELSE coalesce(min(first_ns) FILTER (clock_zero_unix_ns IS NOT NULL) OVER (), min(first_ns) OVER ())
        END AS first_ns
    FROM moved
),

based AS (
    SELECT
        capture_id, at_ns, stretch, is_comparable, shift_ns,
        count(clock_zero_unix_ns) OVER () > 0 AS is_unix,
        -- The zero of the first capture, unless something starts before it.
        least(coalesce(arg_min(clock_zero_unix_ns, capture_id) OVER (), 0), min(first_ns) OVER ()) AS base_ns
    FROM placed
)

-- Fails if captures are 292 years apart.
SELECT
    capture_id, is_comparable, is_unix, base_ns, stretch,
    (shift_ns - base_ns)::BIGINT AS move_ns,
    CASE stretch WHEN 0 THEN 0 ELSE (at_ns - shift_ns)::BIGINT END AS fixed_ns
FROM based;

CREATE OR REPLACE TEMP TABLE trace_slice AS
WITH shifted AS (
    SELECT
        r.capture_id, r.kind, r.row_id,
        r.process_id, r.thread_id, r.device_id, r.context_id, r.stream_id, r.queue_id,
        r.start_ns + c.move_ns
            - CASE c.stretch WHEN 0 THEN 0 ELSE round((r.start_ns - c.fixed_ns) * c.stretch)::BIGINT END AS start_ns,
        r.end_ns + c.move_ns
            - CASE c.stretch WHEN 0 THEN 0 ELSE round((r.end_ns - c.fixed_ns) * c.stretch)::BIGINT END AS moved_end_ns,
        r.end_ns - r.start_ns AS duration_ns
    FROM temp.trace_row AS r
    INNER JOIN temp.trace_clock AS c ON c.capture_id = r.capture_id
)

SELECT
    row_number() OVER (
        ORDER BY capture_id,
            CASE kind WHEN 'range' THEN 1 WHEN 'op' THEN 2 WHEN 'launch' THEN 3 WHEN 'projection' THEN 4 ELSE 5 END, row_id
    ) AS n,
    capture_id, kind, row_id,
    dense_rank() OVER (
        ORDER BY capture_id,
            CASE kind WHEN 'gpu' THEN 2 WHEN 'projection' THEN 3 ELSE 1 END,
            process_id, thread_id, device_id, context_id, queue_id, stream_id
    ) AS track,
    process_id, thread_id, device_id, context_id, stream_id, queue_id,
    start_ns,
    CASE kind WHEN 'gpu' THEN start_ns + duration_ns ELSE moved_end_ns END AS end_ns
FROM shifted;

DROP TABLE temp.trace_row;
