-- Every GPU event whose times can be true, also dispatches measured while hardware counters were read.
-- Grain: row of v1._recorded_event without time_fault: what `tracedb report --counted` puts in the place of v1._gpu_event.
CREATE VIEW v1._timed_event AS
SELECT e.* EXCLUDE (is_counted, time_fault)
FROM v1._recorded_event AS e
WHERE e.time_fault IS NULL;
