-- Collects what replayed GPU events may come from: calls that were recorded into a graph, and kernels launched without a
-- graph. Only those whose name some replayed event has.
-- In:  temp tables graph_replay and graph_text; {graph_launch}; {kernel_launch}: pattern of the names of calls that launch
--      a kernel; {most}: most rows per sequence.
-- Out: temp table graph_origin, one row each with its place in a sequence: the launches of one stream capture (or of a
--      process, if stream captures were not recorded), or all kernels of a process.
--      Also temp table graph_unnamed: captured launches of stream captures that name no kernels, as on CUDA.
-- A captured launch has no GPU work, and names its kernel on ROCm. Its operator is the innermost one on its thread. A
-- driver call inside the runtime's own call is the same launch.
CREATE OR REPLACE TEMP TABLE graph_token AS
SELECT t.spelling, min(t.token) AS token
FROM graph_text AS t
GROUP BY t.spelling;

CREATE OR REPLACE TEMP TABLE graph_captured AS
WITH edges AS (
    SELECT l.capture_id, l.process_id, l.start_ns, bool_or(contains(l.name, 'BeginCapture')) AS is_begin
    FROM main.launch AS l
    WHERE contains(l.name, 'BeginCapture') OR contains(l.name, 'EndCapture')
    GROUP BY l.capture_id, l.process_id, l.start_ns
),
named AS (
    SELECT DISTINCT n.capture_id
    FROM main.launch AS n
    WHERE n.kernel_name IS NOT NULL OR n.graph_node_id IS NOT NULL
),
calls AS (
    SELECT
        l.capture_id, l.launch_id, l.process_id, l.thread_id, l.start_ns, l.duration_ns, l.graph_node_id,
        coalesce(
            l.kernel_name,
            CASE WHEN l.name ILIKE '%memcpy%' THEN 'memcpy' WHEN l.name ILIKE '%memset%' THEN 'memset' END
        ) AS name,
        l.capture_id IN (SELECT n.capture_id FROM named AS n) AS is_named,
        regexp_matches(l.name, '{kernel_launch}') AS is_kernel
    FROM main.launch AS l
    WHERE
        (
            l.capture_id IN (SELECT n.capture_id FROM named AS n)
            OR l.capture_id IN (SELECT g.capture_id FROM edges AS g)
        )
        AND NOT EXISTS (
            SELECT 1 FROM main.kernel_event AS e WHERE e.capture_id = l.capture_id AND e.launch_id = l.launch_id
        )
),
placed AS (
    SELECT c.*, g.start_ns AS window_ns, g.is_begin
    FROM calls AS c
    ASOF LEFT JOIN edges AS g
        ON g.capture_id = c.capture_id
        AND coalesce(g.process_id, -9223372036854775807) = coalesce(c.process_id, -9223372036854775807)
        AND g.start_ns <= c.start_ns
    WHERE c.name IS NOT NULL OR c.graph_node_id IS NOT NULL OR (c.is_kernel AND NOT c.is_named)
    QUALIFY c.is_named OR coalesce(c.start_ns >= max(c.start_ns + c.duration_ns) OVER (
        PARTITION BY c.capture_id, c.process_id, c.thread_id
        ORDER BY c.start_ns, c.duration_ns DESC, c.launch_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ), true)
)
SELECT
    p.capture_id, p.launch_id, p.process_id, p.thread_id, p.start_ns, p.graph_node_id, p.name, p.is_named,
    CASE WHEN p.capture_id IN (SELECT g.capture_id FROM edges AS g) THEN p.window_ns END AS window_ns
FROM placed AS p
WHERE p.is_begin OR p.graph_node_id IS NOT NULL OR p.capture_id NOT IN (SELECT g.capture_id FROM edges AS g);

CREATE OR REPLACE TEMP TABLE graph_captured_op AS
WITH RECURSIVE starts AS (
    SELECT
        o.capture_id, o.process_id, o.thread_id, o.start_ns, o.op_id, o.parent_op_id, o.start_ns + o.duration_ns AS end_ns
    FROM main.op AS o
    WHERE o.capture_id IN (SELECT c.capture_id FROM graph_captured AS c)
    QUALIFY row_number() OVER (
        PARTITION BY o.capture_id, o.process_id, o.thread_id, o.start_ns ORDER BY o.duration_ns, o.op_id DESC
    ) = 1
),
latest AS (
    SELECT c.capture_id, c.launch_id, c.start_ns AS at_ns, s.op_id, s.parent_op_id, s.end_ns
    FROM graph_captured AS c
    ASOF INNER JOIN starts AS s
        ON s.capture_id = c.capture_id
        AND coalesce(s.process_id, -9223372036854775807) = coalesce(c.process_id, -9223372036854775807)
        AND coalesce(s.thread_id, -9223372036854775807) = coalesce(c.thread_id, -9223372036854775807)
        AND s.start_ns <= c.start_ns
),
climb AS (
    SELECT t.capture_id, t.launch_id, t.at_ns, t.op_id, t.parent_op_id, t.end_ns
    FROM latest AS t
    UNION
    SELECT c.capture_id, c.launch_id, c.at_ns, o.op_id, o.parent_op_id, o.start_ns + o.duration_ns AS end_ns
    FROM climb AS c
    INNER JOIN main.op AS o ON o.capture_id = c.capture_id AND o.op_id = c.parent_op_id
    WHERE c.end_ns < c.at_ns
)
SELECT c.capture_id, c.launch_id, c.op_id
FROM climb AS c
WHERE c.end_ns >= c.at_ns;

CREATE OR REPLACE TEMP TABLE graph_origin AS
WITH captured AS (
    SELECT
        'captured launch' AS origin, c.capture_id, coalesce(c.process_id, -1) AS process_id,
        coalesce(c.window_ns, -1) AS sequence_ns, c.launch_id, NULL::BIGINT AS event_id, o.op_id, c.start_ns, c.name
    FROM graph_captured AS c
    LEFT JOIN graph_captured_op AS o ON o.capture_id = c.capture_id AND o.launch_id = c.launch_id
    WHERE c.is_named
),
eager AS (
    SELECT
        'eager kernel' AS origin, e.capture_id, -1 AS process_id, -1 AS sequence_ns,
        e.launch_id, e.event_id, e.op_id, coalesce(l.start_ns, e.start_ns) AS start_ns,
        CASE e.kind WHEN 'kernel' THEN e.name ELSE e.kind END AS name
    FROM main.kernel_event AS e
    LEFT JOIN main.launch AS l ON l.capture_id = e.capture_id AND l.launch_id = e.launch_id
    WHERE
        e.op_id IS NOT NULL AND e.kind <> 'graph' AND e.graph_node_id IS NULL
        AND NOT coalesce(contains(l.name, '{graph_launch}'), false)
),
together AS (
    SELECT c.* FROM captured AS c
    UNION ALL
    SELECT e.* FROM eager AS e
),
names AS (
    SELECT DISTINCT t.name
    FROM together AS t
),
tokens AS (
    SELECT n.name, k.token
    FROM names AS n
    INNER JOIN graph_token AS k ON k.spelling = regexp_replace(n.name, '^void |\s|\.kd$', '', 'g')
)
SELECT t.origin, t.capture_id, t.process_id, t.sequence_ns, t.launch_id, t.event_id, t.op_id, k.token, t.start_ns
FROM together AS t
INNER JOIN tokens AS k ON k.name = t.name
QUALIFY row_number() OVER (
    PARTITION BY t.origin, t.capture_id, t.process_id, t.sequence_ns ORDER BY t.start_ns, t.launch_id, t.event_id
) <= {most};

CREATE OR REPLACE TEMP TABLE graph_unnamed AS
SELECT
    c.capture_id, coalesce(c.process_id, -1) AS process_id, c.window_ns, c.start_ns, c.launch_id, o.op_id,
    coalesce(c.name, 'kernel') AS kind
FROM graph_captured AS c
LEFT JOIN graph_captured_op AS o ON o.capture_id = c.capture_id AND o.launch_id = c.launch_id
WHERE NOT c.is_named AND c.window_ns IS NOT NULL;
