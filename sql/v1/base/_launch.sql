-- Every runtime and driver API call with its capture: the base of the views over API calls.
-- Grain: call. Calls with impossible times (time_fault) are excluded.
CREATE VIEW v1._launch AS
SELECT
    l.capture_id, l.launch_id, l.correlation_id,
    c.source, c.rank, c.labels,
    l.name, l.process_id, l.thread_id, l.start_ns, l.duration_ns
FROM main.launch AS l
LEFT JOIN main.capture AS c ON c.capture_id = l.capture_id
WHERE l.time_fault IS NULL;
