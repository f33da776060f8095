-- Every GPU event with its capture, vendor and class, also dispatches measured while hardware counters were read
-- and events whose times cannot be true.
-- Grain: row of main.kernel_event, of every kind. Class: copies and memsets are 'copy', graph replays 'graph'; a
-- kernel's is the user's rule if one matched its name, else collective if it was recorded with collective
-- arguments, else the shipped rule's.
-- Why operator, launch and step are not here: they are joins of millions to millions, which a report pays for only
-- when it asks for them (hook join in ../README.md).
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
