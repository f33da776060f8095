-- Collects the GPU events that graphs replayed, with their names in one spelling and numbered.
-- In:  {graph_launch}: text contained in the names of calls that launch a graph.
-- Out: temp tables graph_replay (replayed event) and graph_text (spelling × token). A copy or memset has its kind as its
--      spelling, because its recorded name depends on the profiler's release. Graphs replayed as a whole are left out.
CREATE OR REPLACE TEMP TABLE graph_replay AS
WITH calls AS (
    SELECT l.capture_id, l.launch_id
    FROM main.launch AS l
    WHERE contains(l.name, '{graph_launch}')
)
SELECT
    e.capture_id, e.event_id, e.launch_id, e.stream_id, e.start_ns, e.graph_id, e.graph_node_id,
    CASE e.kind WHEN 'kernel' THEN e.name ELSE e.kind END AS name
FROM main.kernel_event AS e
LEFT JOIN calls AS c ON c.capture_id = e.capture_id AND c.launch_id = e.launch_id
WHERE e.kind <> 'graph' AND (c.launch_id IS NOT NULL OR (e.graph_node_id IS NOT NULL AND e.launch_id IS NULL));

CREATE OR REPLACE TEMP TABLE graph_text AS
WITH names AS (
    SELECT DISTINCT r.name
    FROM graph_replay AS r
),
spellings AS (
    SELECT n.name, regexp_replace(n.name, '^void |\s|\.kd$', '', 'g') AS spelling
    FROM names AS n
)
SELECT s.name, s.spelling, dense_rank() OVER (ORDER BY s.spelling)::INTEGER AS token
FROM spellings AS s;
