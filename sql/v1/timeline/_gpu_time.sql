-- How long does computation, computation or collectives, and anything at all run on each GPU?
-- Grain: capture × device. One ordered pass over the events: an event adds to a union the part of it after the latest
-- end so far of that union. Views that use this view do not repeat it: if a report has filters or --by, the text of
-- this view replaces its name (hook inline), so that they apply to the events.
CREATE VIEW v1._gpu_time AS
WITH events AS (
    SELECT
        /* by e */
        e.capture_id AS clock_id,
        e.device_id AS gpu_id,
        e.start_ns,
        e.end_ns,
        CASE WHEN e.kind IN ('memcpy', 'memset') THEN 3 WHEN e.class = 'collective' THEN 2 ELSE 1 END AS layer
    FROM v1._gpu_event AS e /* join e */
    WHERE true /* filter e */
),
-- The latest end so far of layer 1, of 1 and 2, and of all three.
reaches AS (
    SELECT
        /* by */
        clock_id,
        gpu_id,
        start_ns,
        end_ns,
        layer,
        coalesce(max(end_ns) FILTER (layer = 1) OVER earlier, start_ns) AS reach_1_ns,
        coalesce(max(end_ns) FILTER (layer <= 2) OVER earlier, start_ns) AS reach_2_ns,
        coalesce(max(end_ns) OVER earlier, start_ns) AS reach_3_ns
    FROM events
    WINDOW earlier AS (
        PARTITION BY /* by */ clock_id, gpu_id
        ORDER BY start_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    )
)
SELECT
    /* by */
    clock_id,
    gpu_id,
    coalesce(sum(greatest(end_ns, reach_1_ns) - greatest(start_ns, reach_1_ns)) FILTER (layer = 1), 0) AS union_1_ns,
    coalesce(sum(greatest(end_ns, reach_2_ns) - greatest(start_ns, reach_2_ns)) FILTER (layer <= 2), 0) AS union_2_ns,
    sum(greatest(end_ns, reach_3_ns) - greatest(start_ns, reach_3_ns)) AS union_3_ns,
    max(end_ns) - min(start_ns) AS total_ns
FROM reaches
GROUP BY /* by */ clock_id, gpu_id;
