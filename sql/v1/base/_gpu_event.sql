-- Every GPU event with its capture, vendor and class: the base of every view over GPU time.
-- Grain: row of v1._recorded_event, without the dispatches measured while hardware counters were read: kernels run
-- one at a time then, and their durations are not those of a plain run. `tracedb report --counted` puts
-- v1._timed_event in the place of this one. Without events whose times cannot be true (time_fault), too.
CREATE VIEW v1._gpu_event AS
SELECT e.* EXCLUDE (is_counted, time_fault)
FROM v1._recorded_event AS e
WHERE NOT e.is_counted AND e.time_fault IS NULL;
