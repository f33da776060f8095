-- Adds how one side of a comparison spent its GPU time, by unit: from the first start of its events to the last end.
-- In:  {side}: its number; in place of timeline, v1.gpu_timeline of its events by unit (comparison.py).
-- Out: more rows of temp tables side_timeline_unit(side, unit) and side_value(side, kind, name, unit, calls, total_ns).
CREATE OR REPLACE TEMP TABLE side_timeline AS
{timeline};

INSERT INTO side_timeline_unit
SELECT {side}, unit
FROM side_timeline;

INSERT INTO side_value
WITH parts AS (
    SELECT
        unit,
        unnest([
            ('computation', computation_ns), ('exposed collective', exposed_collective_ns),
            ('exposed copy', exposed_copy_ns), ('busy', busy_ns), ('idle', idle_ns), ('total', total_ns)
        ]) AS part
    FROM side_timeline
)

SELECT {side}, 'timeline', part[1], unit, 1, part[2]
FROM parts;
