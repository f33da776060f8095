-- The slices of a capture's threads, as events of a trace, each lane in time order with the outer slice first.
-- In:  temp tables of trace_slice.sql, trace_link.sql and trace_process.sql; variable trace_capture.
-- The first 13 columns, up to is_mark, are the fields of `Slice` in src/tracedb/export/timeline.py, in that order; all
-- later columns are arguments, under their own names. flows: the GPU events that a call launched. ts and dur: start_ns
-- and end_ns - start_ns, in µs as decimal text.
WITH launched AS (
    SELECT e.launch_id, list(g.n ORDER BY g.n) AS flows, min(e.op_id) AS op_id
    FROM temp.trace_event AS e
    INNER JOIN temp.trace_slice AS g ON g.capture_id = e.capture_id AND g.kind = 'gpu' AND g.row_id = e.event_id
    WHERE e.capture_id = getvariable('trace_capture') AND e.launch_id IS NOT NULL
    GROUP BY e.launch_id
),

op AS (
    SELECT
        o.op_id, o.name, o.sequence_number, o.forward_thread_id, o.input_dims, o.input_types, o.input_strides,
        o.concrete_inputs
    FROM main.op AS o
    WHERE o.capture_id = getvariable('trace_capture')
),

call AS (
    SELECT l.launch_id, l.name, l.correlation_id
    FROM main.launch AS l
    WHERE l.capture_id = getvariable('trace_capture')
),

annotation AS (
    SELECT r.annotation_id, r.name, r.domain, r.style, r.is_open, r.device_id, r.stream_id
    FROM main.annotation AS r
    WHERE r.capture_id = getvariable('trace_capture')
)

SELECT
    CASE
        WHEN s.kind = 'projection' THEN 'gpu_user_annotation'
        WHEN s.kind = 'op' THEN 'cpu_op'
        WHEN s.kind = 'launch' AND regexp_matches(c.name, '^cu[A-Z]') THEN 'cuda_driver'
        WHEN s.kind = 'launch' THEN 'cuda_runtime'
        WHEN r.style = 'python_function' THEN 'python_function'
        ELSE 'user_annotation'
    END AS category,
    coalesce(o.name, c.name, r.name) AS name,
    p.pid,
    t.tid,
    t.number AS track_number,
    s.start_ns,
    s.end_ns,
    format('{}.{:03d}', s.start_ns // 1000, s.start_ns % 1000) AS ts,
    format('{}.{:03d}', (s.end_ns - s.start_ns) // 1000, (s.end_ns - s.start_ns) % 1000) AS dur,
    f.flows,
    NULL::BIGINT AS flow,
    coalesce(r.is_open, false) AS is_open,
    coalesce(r.style = 'mark', false) AS is_mark,
    CASE s.kind WHEN 'op' THEN p.first_op + o.op_id WHEN 'launch' THEN p.first_op + f.op_id END AS "External id",
    c.correlation_id AS "correlation",
    o.sequence_number AS "Sequence number",
    o.forward_thread_id AS "Fwd thread id",
    o.input_dims AS "Input Dims",
    o.input_types AS "Input type",
    o.input_strides AS "Input Strides",
    o.concrete_inputs AS "Concrete Inputs",
    r.domain AS "domain",
    CASE WHEN r.style NOT IN ('user', 'gpu_projection', 'python_function') THEN r.style END AS "style",
    CASE s.kind WHEN 'projection' THEN r.device_id END AS "of device",
    CASE s.kind WHEN 'projection' THEN r.stream_id END AS "of stream"
FROM temp.trace_slice AS s
INNER JOIN temp.trace_process AS p ON p.capture_id = s.capture_id
LEFT JOIN temp.trace_link AS k ON k.n = s.n
INNER JOIN temp.trace_lane AS t ON t.track = s.track AND t.lane = coalesce(k.lane, 0)
LEFT JOIN op AS o ON s.kind = 'op' AND o.op_id = s.row_id
LEFT JOIN call AS c ON s.kind = 'launch' AND c.launch_id = s.row_id
LEFT JOIN launched AS f ON s.kind = 'launch' AND f.launch_id = s.row_id
LEFT JOIN annotation AS r ON s.kind IN ('range', 'projection') AND r.annotation_id = s.row_id
WHERE s.capture_id = getvariable('trace_capture') AND s.kind <> 'gpu'
ORDER BY t.number, s.start_ns, (s.start_ns = s.end_ns) = (t.lane = 0), s.end_ns DESC, s.n;
