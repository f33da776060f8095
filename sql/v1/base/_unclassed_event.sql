-- Every GPU event without its class: the base of views that classify names after grouping. Looking up the name of each
-- of millions of events costs more than summing their times by name.
-- Grain: row of v1._captured_event, without dispatches measured while hardware counters were collected and without
-- events with impossible times (time_fault). `tracedb report` uses v1._gpu_event instead for --class, and
-- v1._timed_event for --counted.
CREATE VIEW v1._unclassed_event AS
SELECT e.* EXCLUDE (is_counted, time_fault)
FROM v1._captured_event AS e
WHERE NOT e.is_counted AND e.time_fault IS NULL;
