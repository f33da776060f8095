-- What does a step wait for, from its end back to its beginning?
-- Grain: segment. main.critical_segment has the path through one rank, found at load; this view says what each segment is
-- bound by. A collective on the path is cut where the last rank starts it: before that, the step waits for that rank, and
-- the collective itself takes the rest. The last rank is known only on a common clock (v1._collective_instance). A kernel
-- that sends or receives is cut at the end of its waiting for the other rank (v1.point_to_point), of several for the
-- longest.
CREATE VIEW v1.critical_path AS
WITH members AS (
    SELECT
        p.capture_id, p.event_id,
        greatest(max(p.start_ns) OVER (PARTITION BY p.collective_id) - p.start_ns, 0) AS wait_ns,
        arg_max(p.rank, p.start_ns) OVER (PARTITION BY p.collective_id) AS last_rank
    FROM v1._collective_member AS p
),
messages AS (
    SELECT
        p.source_rank, p.send_capture_id, p.send_event_id, p.send_wait_ns,
        p.destination_rank, p.recv_capture_id, p.recv_event_id, p.recv_wait_ns
    FROM v1.point_to_point AS p
),
delays AS (
    SELECT m.capture_id, m.event_id, m.wait_ns, m.last_rank
    FROM members AS m
    UNION ALL
    SELECT p.send_capture_id AS capture_id, p.send_event_id AS event_id, p.send_wait_ns AS wait_ns,
        p.destination_rank AS last_rank
    FROM messages AS p
    UNION ALL
    SELECT p.recv_capture_id AS capture_id, p.recv_event_id AS event_id, p.recv_wait_ns AS wait_ns,
        p.source_rank AS last_rank
    FROM messages AS p
),
longest AS (
    SELECT d.capture_id, d.event_id, max(d.wait_ns) AS wait_ns, arg_max(d.last_rank, (d.wait_ns, -d.last_rank)) AS last_rank
    FROM delays AS d
    WHERE d.wait_ns > 0 AND d.last_rank IS NOT NULL
    GROUP BY d.capture_id, d.event_id
),
segments AS (
    SELECT
        s.capture_id AS path_id, s.ordinal, s.capture_id, s.step, s.kind, s.event_id, s.launch_id, s.op_id, s.annotation_id, s.thread_id,
        s.start_ns, s.duration_ns, s.slack_ns,
        e.name AS event_name, e.class, e.kind AS event_kind, e.device_id, e.op_id AS event_op_id,
        CASE WHEN s.kind = 'gpu' AND e.class = 'collective' AND m.last_rank IS NOT NULL
            THEN least(greatest(e.start_ns + m.wait_ns - s.start_ns, 0), s.duration_ns) ELSE 0 END AS wait_ns,
        m.last_rank
    FROM main.critical_segment AS s
    LEFT JOIN v1._gpu_event AS e ON e.capture_id = s.capture_id AND e.event_id = s.event_id
    LEFT JOIN longest AS m ON m.capture_id = s.capture_id AND m.event_id = s.event_id AND s.kind = 'gpu'
),
halves AS (
    SELECT unnest([true, false]) AS is_wait
),
parts AS (
    SELECT
        s.path_id, s.ordinal, s.capture_id, s.step, s.kind, s.event_id, s.launch_id, s.op_id, s.annotation_id, s.thread_id, s.slack_ns,
        s.event_name, s.class, s.event_kind, s.device_id, s.event_op_id, s.last_rank,
        h.is_wait,
        CASE WHEN h.is_wait THEN s.start_ns ELSE s.start_ns + s.wait_ns END AS part_start_ns,
        CASE WHEN h.is_wait THEN s.wait_ns ELSE s.duration_ns - s.wait_ns END AS part_ns
    FROM segments AS s
    CROSS JOIN halves AS h
    WHERE CASE WHEN h.is_wait THEN s.wait_ns ELSE s.duration_ns - s.wait_ns END > 0
)
SELECT
    s.capture_id, c.rank, c.labels, s.device_id, s.step,
    row_number() OVER (PARTITION BY s.path_id, s.step ORDER BY s.ordinal, s.is_wait DESC) - 1 AS ordinal,
    CASE
        WHEN s.kind = 'unknown' THEN NULL
        WHEN s.is_wait THEN 'wait'
        WHEN s.kind = 'gpu' AND s.class = 'collective' THEN 'collective'
        WHEN s.kind = 'gpu' AND s.event_kind IN ('memcpy', 'memset') THEN 'copy'
        WHEN s.kind = 'gpu' THEN 'kernel'
        WHEN s.kind IN ('launch', 'gap') THEN 'launch'
        WHEN s.kind IN ('sync', 'wait') THEN 'sync'
        ELSE 'host'
    END AS bound_by,
    CASE
        WHEN s.is_wait THEN 'wait for rank ' || s.last_rank || ': ' || s.event_name
        WHEN s.kind = 'unknown' THEN 'not recorded'
        WHEN s.kind = 'sync' THEN coalesce(l.name, 'synchronization')
        WHEN s.kind = 'host' THEN coalesce(
            o.name, CASE WHEN a.name NOT LIKE 'ProfilerStep#%' THEN a.name END, 'outside of operators'
        )
        ELSE coalesce(s.event_name, '(event ' || s.event_id || ')')
    END AS name,
    s.event_id,
    s.part_start_ns AS start_ns,
    s.part_ns AS duration_ns,
    CASE WHEN s.is_wait THEN s.last_rank END AS waits_for_rank,
    s.slack_ns,
    coalesce(s.op_id, s.event_op_id) AS op_id,
    s.launch_id,
    s.annotation_id,
    s.thread_id
FROM parts AS s
LEFT JOIN main.capture AS c ON c.capture_id = s.capture_id
LEFT JOIN main.op AS o ON o.capture_id = s.capture_id AND o.op_id = s.op_id
LEFT JOIN main.annotation AS a ON a.capture_id = s.capture_id AND a.annotation_id = s.annotation_id
LEFT JOIN main.launch AS l ON l.capture_id = s.capture_id AND l.launch_id = s.launch_id;

COMMENT ON VIEW v1.critical_path IS 'Critical path of each step: what its end waited for, back to its beginning. Grain: segment.';
COMMENT ON COLUMN v1.critical_path.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN v1.critical_path.rank IS 'Rank of the capture; NULL if unknown. [-]';
COMMENT ON COLUMN v1.critical_path.labels IS 'Labels of the capture: sweep, threads, channels and others.';
COMMENT ON COLUMN v1.critical_path.device_id IS 'Device number within the capture; NULL for work of the host. [-]';
COMMENT ON COLUMN v1.critical_path.step IS 'Step number; NULL if no step is marked and the path is that of the whole capture. [-]';
COMMENT ON COLUMN v1.critical_path.ordinal IS 'Place in the path, from 0. [-]';
COMMENT ON COLUMN v1.critical_path.bound_by IS 'What the step was bound by: host, launch (from a launch or the event before to the start of GPU work), kernel, copy, collective, sync (return from a synchronization, or a wait of one stream for another), wait (for the last rank of a collective, or the other rank of a message); NULL if the device idled and nothing recorded says why.';
COMMENT ON COLUMN v1.critical_path.name IS 'Kernel or copy (of a launch: the one that follows), operator or range of work of the host, call that synchronized.';
COMMENT ON COLUMN v1.critical_path.event_id IS 'GPU event (kernel_event.event_id); of a launch, the one that follows. [-]';
COMMENT ON COLUMN v1.critical_path.start_ns IS 'Start, on the capture''s clock. [ns]';
COMMENT ON COLUMN v1.critical_path.duration_ns IS 'Duration; those of a step sum to the span of the step. [ns]';
COMMENT ON COLUMN v1.critical_path.waits_for_rank IS 'Rank that was waited for; NULL if the segment is no wait. [-]';
COMMENT ON COLUMN v1.critical_path.slack_ns IS 'By how much the next dependency would have been fulfilled earlier: what can be gained here before another one binds; NULL if there is no other. [ns]';
COMMENT ON COLUMN v1.critical_path.op_id IS 'Operator: the outermost one of work of the host, the launching one of GPU work. [-]';
COMMENT ON COLUMN v1.critical_path.launch_id IS 'API call that waited, of a synchronization (launch.launch_id). [-]';
COMMENT ON COLUMN v1.critical_path.annotation_id IS 'Innermost range around work of the host. [-]';
COMMENT ON COLUMN v1.critical_path.thread_id IS 'Thread, of work of the host. [-]';
