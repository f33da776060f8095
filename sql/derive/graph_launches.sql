-- The graph launches of a capture without GPU work, although their replays should have been recorded.
-- In:  {capture}: the capture; {graph_launch}: text contained in the names of calls that launch a graph.
-- Out: temp.graph_call: calls that launch a graph (launch_id, thread_id, start_ns), with the number of GPU events that
--      name them as their launch (events), and whether these are only a part of the replay (is_partial).
-- A driver call inside the runtime's own call is the same launch: only names that own GPU work count; if none does, the
-- runtime's. A capture whose GPU work refers to no launches at all, or that has replays without their launch, gives no
-- rows.
-- A part of a replay: the events are the first ones of another, longer replay that begins with the same kernel, in the
-- same order, and most replays that begin so are that long.
CREATE OR REPLACE TEMP TABLE graph_call AS
WITH calls AS (
    SELECT l.launch_id, l.name, l.thread_id, l.start_ns
    FROM main.launch AS l
    WHERE l.capture_id = {capture} AND contains(l.name, '{graph_launch}')
),
linked AS (
    SELECT count(e.launch_id) > 0
        AND count(*) FILTER (e.launch_id IS NULL AND (e.kind = 'graph' OR e.graph_node_id IS NOT NULL)) = 0 AS is_linked
    FROM main.kernel_event AS e
    WHERE e.capture_id = {capture} AND e.time_fault IS NULL
),
answered AS (
    SELECT e.launch_id, count(*) AS events, arg_min(e.name, e.start_ns) AS first_name
    FROM main.kernel_event AS e
    SEMI JOIN calls AS c ON c.launch_id = e.launch_id
    WHERE e.capture_id = {capture}
    GROUP BY e.launch_id
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
),
lengths AS (
    SELECT a.first_name, a.events, count(*) AS launches, min(a.launch_id) AS launch_id
    FROM answered AS a
    GROUP BY a.first_name, a.events
),
whole AS (
    SELECT n.first_name, n.events, n.launch_id
    FROM lengths AS n
    QUALIFY row_number() OVER (PARTITION BY n.first_name ORDER BY n.launches DESC, n.events DESC) = 1
        AND 2 * n.launches > sum(n.launches) OVER (PARTITION BY n.first_name)
),
short AS (
    SELECT a.launch_id, w.launch_id AS whole_id, a.events
    FROM answered AS a
    INNER JOIN whole AS w ON w.first_name IS NOT DISTINCT FROM a.first_name AND a.events < w.events
),
sequences AS (
    SELECT e.launch_id, list(e.name ORDER BY e.start_ns, e.event_id) AS kernels
    FROM main.kernel_event AS e
    WHERE e.capture_id = {capture}
        AND e.launch_id IN (SELECT s.launch_id FROM short AS s UNION SELECT s.whole_id FROM short AS s)
    GROUP BY e.launch_id
),
parts AS (
    SELECT s.launch_id
    FROM short AS s
    INNER JOIN sequences AS a ON a.launch_id = s.launch_id
    INNER JOIN sequences AS w ON w.launch_id = s.whole_id
    WHERE a.kernels = w.kernels[:s.events]
)
SELECT
    c.launch_id, c.thread_id, c.start_ns,
    coalesce(a.events, 0) AS events,
    p.launch_id IS NOT NULL AS is_partial
FROM calls AS c
INNER JOIN counted AS n ON n.name = c.name
LEFT JOIN answered AS a ON a.launch_id = c.launch_id
LEFT JOIN parts AS p ON p.launch_id = c.launch_id
WHERE (SELECT i.is_linked FROM linked AS i);
