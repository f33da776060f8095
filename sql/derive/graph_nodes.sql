-- Links replayed GPU events to the call or kernel of the same graph node, where both record it.
-- In:  temp tables graph_replay, graph_captured and graph_captured_op; {graph_launch}.
-- Out: rows of main.graph_link. Nodes are numbered within a process, so the other one is in the same capture, or in one
--      of the same process. A node that several calls have is left out.
INSERT INTO main.graph_link BY NAME
WITH nodes AS (
    SELECT
        'captured launch' AS origin, c.capture_id, c.launch_id, NULL::BIGINT AS event_id, o.op_id, c.graph_node_id
    FROM graph_captured AS c
    LEFT JOIN graph_captured_op AS o ON o.capture_id = c.capture_id AND o.launch_id = c.launch_id
    WHERE c.graph_node_id IS NOT NULL
    UNION ALL
    SELECT 'eager kernel' AS origin, e.capture_id, e.launch_id, e.event_id, e.op_id, e.graph_node_id
    FROM main.kernel_event AS e
    INNER JOIN main.launch AS l ON l.capture_id = e.capture_id AND l.launch_id = e.launch_id
    WHERE e.graph_node_id IS NOT NULL AND NOT contains(l.name, '{graph_launch}')
),
found AS (
    SELECT r.capture_id, r.event_id, r.graph_node_id, n.capture_id AS origin_capture_id
    FROM graph_replay AS r
    INNER JOIN (SELECT DISTINCT d.capture_id, d.graph_node_id FROM nodes AS d) AS n
        ON n.graph_node_id = r.graph_node_id
    INNER JOIN main.capture AS c ON c.capture_id = r.capture_id
    INNER JOIN main.capture AS o ON o.capture_id = n.capture_id
    WHERE c.capture_id = o.capture_id
        OR (c.pid = o.pid AND c.host IS NOT DISTINCT FROM o.host AND c.rank IS NOT DISTINCT FROM o.rank)
    QUALIFY row_number() OVER (
        PARTITION BY r.capture_id, r.event_id ORDER BY o.capture_id <> c.capture_id, o.capture_id
    ) = 1
)
SELECT
    f.capture_id, f.event_id, 'node_id' AS rule, any_value(n.origin) AS origin, f.origin_capture_id,
    any_value(n.launch_id) AS origin_launch_id, any_value(n.event_id) AS origin_event_id, any_value(n.op_id) AS op_id
FROM found AS f
INNER JOIN nodes AS n ON n.capture_id = f.origin_capture_id AND n.graph_node_id = f.graph_node_id
GROUP BY f.capture_id, f.event_id, f.origin_capture_id
HAVING count(*) = 1;
