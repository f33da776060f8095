-- Which Python frame was running when a GPU event was launched? Grain: rule × GPU event × thread with frames. Rule thread:
-- on the launching thread. Rule process: on every thread of the process, because autograd launches the backward pass on a
-- thread of its own while the program waits. The frame is the last one to start before the call, or the nearest of its
-- callers that had not ended.
CREATE VIEW v1._launch_frame AS
WITH RECURSIVE lanes AS (
    SELECT DISTINCT f.capture_id, f.process_id, f.thread_id
    FROM main.frame AS f
),
calls AS (
    SELECT
        e.capture_id, e.event_id, l.process_id, n.thread_id, l.start_ns,
        n.thread_id IS NOT DISTINCT FROM l.thread_id AS is_own
    FROM main.kernel_event AS e
    INNER JOIN main.launch AS l ON l.capture_id = e.capture_id AND l.launch_id = e.launch_id
    INNER JOIN lanes AS n ON n.capture_id = l.capture_id AND n.process_id IS NOT DISTINCT FROM l.process_id
),
latest AS (
    SELECT c.capture_id, c.event_id, c.is_own, c.start_ns AS at_ns, f.frame_id, f.parent_id, f.end_ns
    FROM calls AS c
    ASOF INNER JOIN v1._frame_start AS f
        ON f.capture_id = c.capture_id AND v1._asof_key(f.process_id) = v1._asof_key(c.process_id)
        AND v1._asof_key(f.thread_id) = v1._asof_key(c.thread_id) AND f.start_ns <= c.start_ns
),
climb AS (
    SELECT t.capture_id, t.event_id, t.is_own, t.at_ns, t.frame_id, t.parent_id, t.end_ns
    FROM latest AS t
    UNION
    SELECT
        c.capture_id, c.event_id, c.is_own, c.at_ns, f.frame_id, f.parent_id,
        coalesce(f.start_ns + f.duration_ns, 9223372036854775807) AS end_ns
    FROM climb AS c
    INNER JOIN main.frame AS f ON f.capture_id = c.capture_id AND f.frame_id = c.parent_id
    WHERE c.end_ns < c.at_ns
),
found AS (
    SELECT c.capture_id, c.event_id, c.is_own, c.frame_id
    FROM climb AS c
    WHERE c.end_ns >= c.at_ns
)
SELECT 'process' AS rule, f.capture_id, f.event_id, f.frame_id
FROM found AS f
UNION ALL
SELECT 'thread' AS rule, f.capture_id, f.event_id, f.frame_id
FROM found AS f
WHERE f.is_own;
