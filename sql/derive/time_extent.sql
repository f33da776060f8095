-- Extremes that show whether a capture can have impossible times: one pass over the two large tables.
-- In:  {capture}: the capture; {graph_launch}: text contained in the names of calls that launch a graph.
-- Out: rows (of, events, first_ns, last_ns, longest_ns, graph_launches).
SELECT
    'event' AS of,
    count(*) AS events,
    min(e.start_ns) AS first_ns,
    max(e.start_ns) AS last_ns,
    max(e.duration_ns) AS longest_ns,
    0 AS graph_launches
FROM main.kernel_event AS e
WHERE e.capture_id = {capture}
UNION ALL
SELECT
    'call' AS of,
    count(*) AS events,
    min(l.start_ns) AS first_ns,
    max(l.start_ns) AS last_ns,
    max(l.duration_ns) AS longest_ns,
    count(*) FILTER (contains(l.name, '{graph_launch}')) AS graph_launches
FROM main.launch AS l
WHERE l.capture_id = {capture};
