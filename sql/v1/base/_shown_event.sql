-- Every GPU event except counted dispatches, including events with impossible times: the rows of v1.kernels.
-- Grain: row of v1._recorded_event, without dispatches measured while hardware counters were collected.
CREATE VIEW v1._shown_event AS
SELECT e.* EXCLUDE (is_counted)
FROM v1._recorded_event AS e
WHERE NOT e.is_counted;
