-- v1._frame_member with the names of frames, in the place of v1._range_kernel. Grain: rule × frame × GPU event.
CREATE VIEW v1._frame_kernel AS
SELECT
    m.rule, m.capture_id, m.event_id, m.annotation_id,
    f.name, NULL::VARCHAR AS domain, f.kind AS style, f.process_id, f.thread_id
FROM v1._frame_member AS m
INNER JOIN main.frame AS f ON f.capture_id = m.capture_id AND f.frame_id = m.annotation_id;
