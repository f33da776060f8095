-- Counts the graph launches of a capture without GPU work, although their replays should have been recorded.
-- In:  {capture}: the capture; {graph_launch}: text contained in the names of calls that launch a graph.
-- Out: one row (launches, missing, inside): calls that launch a graph; those that no GPU event names as its launch; and
--      those of the latter between the first and the last GPU event.
-- A driver call inside the runtime's own call is the same launch: only names that own GPU work count; if none does, the
-- runtime's. A capture whose GPU work refers to no launches at all, or that has replays without their launch, gives no
-- result.
WITH calls AS (
    SELECT l.launch_id, l.name, l.start_ns
    FROM main.launch AS l
    WHERE l.capture_id = {capture} AND contains(l.name, '{graph_launch}')
),
events AS (
    SELECT
        min(e.start_ns) AS first_ns,
        max(e.start_ns) AS last_ns,
        count(e.launch_id) AS launched,
        count(*) FILTER (e.launch_id IS NULL AND (e.kind = 'graph' OR e.graph_node_id IS NOT NULL)) AS unlinked
    FROM main.kernel_event AS e
    WHERE e.capture_id = {capture} AND e.time_fault IS NULL
),
answered AS (
    SELECT DISTINCT e.launch_id
    FROM main.kernel_event AS e
    WHERE e.capture_id = {capture} AND e.launch_id IN (SELECT c.launch_id FROM calls AS c)
),
names AS (
    SELECT c.name, count(a.launch_id) > 0 AS is_answered, NOT starts_with(c.name, 'cu') OR starts_with(c.name, 'cuda') AS is_runtime
    FROM calls AS c
    LEFT JOIN answered AS a ON a.launch_id = c.launch_id
    GROUP BY c.name
),
counted AS (
    SELECT n.name
    FROM names AS n
    WHERE n.is_answered
        OR (NOT EXISTS (SELECT 1 FROM names AS m WHERE m.is_answered)
            AND (n.is_runtime OR NOT EXISTS (SELECT 1 FROM names AS m WHERE m.is_runtime)))
)
SELECT
    count(*) AS launches,
    count(*) FILTER (a.launch_id IS NULL) AS missing,
    count(*) FILTER (a.launch_id IS NULL AND c.start_ns BETWEEN e.first_ns AND e.last_ns) AS inside
FROM calls AS c
INNER JOIN counted AS n ON n.name = c.name
LEFT JOIN answered AS a ON a.launch_id = c.launch_id
CROSS JOIN events AS e
WHERE e.launched > 0 AND e.unlinked = 0;
