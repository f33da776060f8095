-- Every GPU event of a plain run, also those whose times cannot be true: what v1.kernels lists.
-- Grain: row of v1._recorded_event, without the dispatches measured while hardware counters were read.
CREATE VIEW v1._shown_event AS
SELECT e.* EXCLUDE (is_counted)
FROM v1._recorded_event AS e
WHERE NOT e.is_counted;
