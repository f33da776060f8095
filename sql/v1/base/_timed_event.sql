-- Every GPU event with plausible times, including dispatches measured while hardware counters were collected.
-- Grain: row of v1._recorded_event without time_fault. `tracedb report --counted` uses it instead of v1._gpu_event.
CREATE VIEW v1._timed_event AS
SELECT e.* EXCLUDE (is_counted, time_fault)
FROM v1._recorded_event AS e
WHERE e.time_fault IS NULL;
