-- Which Python frame is innermost when one starts? Grain: start of a frame on a thread. Of frames that start at the same
-- time, the innermost is the shortest, or the last one recorded. A frame without a duration never ends.
CREATE VIEW v1._frame_start AS
SELECT
    r.capture_id, r.process_id, r.thread_id, r.start_ns, r.frame_id, r.parent_id,
    coalesce(r.start_ns + r.duration_ns, 9223372036854775807) AS end_ns
FROM main.frame AS r
QUALIFY row_number() OVER (
    PARTITION BY r.capture_id, r.process_id, r.thread_id, r.start_ns ORDER BY r.duration_ns, r.frame_id DESC
) = 1;
