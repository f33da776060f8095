-- Every GPU event with its capture, vendor and class, including dispatches measured while hardware counters were
-- collected and events with impossible times.
-- Grain: row of main.kernel_event, of every kind. Class: copies and memsets are 'copy', graph replays 'graph'. A
-- kernel's class comes from the first matching user rule; else it is collective, if collective arguments were recorded;
-- else it comes from the built-in rules.
-- Operator, launch and step are not here, because they need joins of millions of rows with millions; a report pays for
-- these only on request (hook join in ../README.md).
CREATE VIEW v1._recorded_event AS
SELECT
    e.*,
    CASE
        WHEN e.kind IN ('memcpy', 'memset') THEN 'copy'
        WHEN e.kind = 'graph' THEN 'graph'
        WHEN e.collective IS NOT NULL AND n.rule_source <> 'user' THEN 'collective'
        ELSE n.class
    END AS class,
    CASE WHEN e.kind = 'kernel' THEN n.short_name ELSE e.name END AS short_name
FROM v1._captured_event AS e
LEFT JOIN v1._kernel_class AS n ON n.name = e.name;
