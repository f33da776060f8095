-- Which Python frame was running on the thread when an operator started? Grain: operator inside a frame. The last frame
-- to start before it, or the nearest of its callers that had not ended.
CREATE VIEW v1._op_frame AS
WITH RECURSIVE latest AS (
    SELECT o.capture_id, o.op_id, o.start_ns AS at_ns, f.frame_id, f.parent_id, f.end_ns
    FROM main.op AS o
    ASOF INNER JOIN v1._frame_start AS f
        ON f.capture_id = o.capture_id AND v1._asof_key(f.process_id) = v1._asof_key(o.process_id)
        AND v1._asof_key(f.thread_id) = v1._asof_key(o.thread_id) AND f.start_ns <= o.start_ns
),
climb AS (
    SELECT t.capture_id, t.op_id, t.at_ns, t.frame_id, t.parent_id, t.end_ns
    FROM latest AS t
    UNION
    SELECT
        c.capture_id, c.op_id, c.at_ns, f.frame_id, f.parent_id,
        coalesce(f.start_ns + f.duration_ns, 9223372036854775807) AS end_ns
    FROM climb AS c
    INNER JOIN main.frame AS f ON f.capture_id = c.capture_id AND f.frame_id = c.parent_id
    WHERE c.end_ns < c.at_ns
)
SELECT c.capture_id, c.op_id, c.frame_id
FROM climb AS c
WHERE c.end_ns >= c.at_ns;
