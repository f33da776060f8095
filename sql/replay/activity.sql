-- Finds what the chosen passes consist of, and to which operator each piece belongs.
-- In:  temp tables replay_range and replay_bound; variable replay_capture.
-- Out: temp table replay_activity(pass, activity_id, device_id, kind, name, class, copy_kind, bytes, grid, block,
--      start_ns, end_ns, launched_ns, op_id, is_graph): GPU events; of a capture without any, operators.
--      op_id is the operator that is run again. On the GPU this is the outermost aten operator around the launch that
--      launches something itself: what its inner operators launch belongs to it, so that nothing counts twice; an
--      operator that only calls others (aten::linear) is none. On the CPU, where one cannot tell who works, it is the
--      outermost aten operator, and where there is none the innermost other one.
CREATE OR REPLACE TEMP TABLE replay_event AS
SELECT p.pass, e.event_id
FROM v1._unclassed_event AS e
INNER JOIN temp.replay_range AS p ON p.annotation_id IS NULL
WHERE e.capture_id = getvariable('replay_capture')
UNION
SELECT p.pass, m.event_id
FROM v1._range_member AS m
INNER JOIN temp.replay_range AS p ON p.annotation_id = m.annotation_id
WHERE m.capture_id = getvariable('replay_capture') AND m.rule IN ('process', 'time');

CREATE OR REPLACE TEMP TABLE replay_owner AS
WITH RECURSIVE launching AS (
    SELECT e.op_id
    FROM main.kernel_event AS e
    WHERE e.capture_id = getvariable('replay_capture') AND e.op_id IS NOT NULL
    GROUP BY e.op_id
),
chain AS (
    SELECT l.op_id, l.op_id AS ancestor_id, 0 AS height
    FROM launching AS l
    UNION ALL
    SELECT c.op_id, o.parent_op_id AS ancestor_id, c.height + 1 AS height
    FROM chain AS c
    INNER JOIN main.op AS o ON o.capture_id = getvariable('replay_capture') AND o.op_id = c.ancestor_id
    WHERE o.parent_op_id IS NOT NULL AND c.height < 256
)
SELECT c.op_id, arg_max(c.ancestor_id, c.height) AS owner_id
FROM chain AS c
INNER JOIN launching AS l ON l.op_id = c.ancestor_id
INNER JOIN main.op AS o ON o.capture_id = getvariable('replay_capture') AND o.op_id = c.ancestor_id
WHERE c.height = 0 OR o.name LIKE 'aten::%'
GROUP BY c.op_id;

CREATE OR REPLACE TEMP TABLE replay_cpu_operator AS
WITH RECURSIVE walked AS (
    SELECT o.op_id, o.name LIKE 'aten::%' AS is_found
    FROM main.op AS o
    WHERE o.capture_id = getvariable('replay_capture') AND o.parent_op_id IS NULL
        AND NOT EXISTS (SELECT 1 FROM main.kernel_event AS e WHERE e.capture_id = getvariable('replay_capture'))
    UNION ALL
    SELECT o.op_id, o.name LIKE 'aten::%' AS is_found
    FROM walked AS w
    INNER JOIN main.op AS o ON o.capture_id = getvariable('replay_capture') AND o.parent_op_id = w.op_id
    WHERE NOT w.is_found
)
SELECT w.op_id
FROM walked AS w
WHERE w.is_found OR NOT EXISTS (
    SELECT 1 FROM main.op AS o WHERE o.capture_id = getvariable('replay_capture') AND o.parent_op_id = w.op_id
);

CREATE OR REPLACE TEMP TABLE replay_activity AS
SELECT
    p.pass, e.event_id AS activity_id, e.device_id,
    e.kind, e.name, e.class, e.copy_kind, e.bytes,
    CASE WHEN e.grid_x IS NOT NULL THEN [e.grid_x, e.grid_y, e.grid_z] END AS grid,
    CASE WHEN e.block_x IS NOT NULL THEN [e.block_x, e.block_y, e.block_z] END AS block,
    e.start_ns, e.end_ns,
    l.start_ns + l.duration_ns AS launched_ns,
    w.owner_id AS op_id,
    coalesce(e.kind = 'graph' OR e.graph_node_id IS NOT NULL OR contains(l.name, 'GraphLaunch'), false) AS is_graph
FROM temp.replay_event AS p
INNER JOIN v1._gpu_event AS e ON e.capture_id = getvariable('replay_capture') AND e.event_id = p.event_id
LEFT JOIN v1._timed_launch AS l ON l.capture_id = e.capture_id AND l.launch_id = e.launch_id
LEFT JOIN temp.replay_owner AS w ON w.op_id = e.op_id
UNION ALL
SELECT
    b.pass, o.op_id AS activity_id, o.thread_id AS device_id,
    'op' AS kind, o.name, NULL AS class, NULL AS copy_kind, NULL AS bytes, NULL AS grid, NULL AS block,
    o.start_ns, o.start_ns + o.duration_ns AS end_ns, NULL AS launched_ns, o.op_id, false AS is_graph
FROM temp.replay_cpu_operator AS w
INNER JOIN main.op AS o ON o.capture_id = getvariable('replay_capture') AND o.op_id = w.op_id
INNER JOIN temp.replay_bound AS b
    ON b.start_ns IS NULL OR (o.start_ns >= b.start_ns AND o.start_ns < b.end_ns);
