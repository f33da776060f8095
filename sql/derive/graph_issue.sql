-- How many graph launches have no kernels, or only a part of them?
-- In:  {capture}: the capture; temp.graph_call of graph_launches.sql.
-- Out: one row (launches, missing, inside, partial): calls that launch a graph; those without GPU events; those of them
--      between the first and the last GPU event; those with a part of the events, all but the last launch.
WITH events AS (
    SELECT min(e.start_ns) AS first_ns, max(e.start_ns) AS last_ns
    FROM main.kernel_event AS e
    WHERE e.capture_id = {capture} AND e.time_fault IS NULL
)
SELECT
    count(*) AS launches,
    count(*) FILTER (c.events = 0) AS missing,
    count(*) FILTER (c.events = 0 AND c.start_ns BETWEEN e.first_ns AND e.last_ns) AS inside,
    count(*) FILTER (c.is_partial AND c.start_ns < (SELECT max(g.start_ns) FROM temp.graph_call AS g WHERE g.events > 0)) AS partial
FROM temp.graph_call AS c
CROSS JOIN events AS e;
