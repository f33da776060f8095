-- Every GPU event without its class: the base of views that learn the class from names once these are grouped. To look
-- up the name of each of millions of events costs more than to add their times up by name.
-- Grain: row of v1._captured_event, without the dispatches measured while hardware counters were read and without
-- events whose times cannot be true (time_fault). `tracedb report` puts v1._gpu_event in the place of this one for
-- --class, and v1._timed_event for --counted.
CREATE VIEW v1._unclassed_event AS
SELECT e.* EXCLUDE (is_counted, time_fault)
FROM v1._captured_event AS e
WHERE NOT e.is_counted AND e.time_fault IS NULL;
