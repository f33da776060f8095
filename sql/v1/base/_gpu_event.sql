-- Every GPU event with its capture, vendor and class: the base of all views over GPU time.
-- Grain: row of v1._recorded_event. Excludes dispatches measured while hardware counters were collected, because
-- kernels run one at a time then and their durations differ from an ordinary run (`tracedb report --counted` uses
-- v1._timed_event instead). Excludes events with impossible times (time_fault).
CREATE VIEW v1._gpu_event AS
SELECT e.* EXCLUDE (is_counted, time_fault)
FROM v1._recorded_event AS e
WHERE NOT e.is_counted AND e.time_fault IS NULL;
