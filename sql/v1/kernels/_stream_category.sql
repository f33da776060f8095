-- Does a stream compute or communicate? It communicates if collectives take at least half of the time of its events.
-- Grain: capture × device × context × stream. Which events count is as in v1._gpu_event; the table is read here, because
-- DuckDB 2 would keep every row of that view where another step of the same query reads it, too.
CREATE VIEW v1._stream_category AS
WITH sums AS (
    SELECT
        e.capture_id,
        e.device_id,
        e.context_id,
        e.stream_id,
        e.name,
        e.kind,
        e.collective IS NOT NULL AS is_argued,
        sum(e.duration_ns) AS total_ns
    FROM main.kernel_event AS e
    WHERE e.kind IN ('kernel', 'memcpy', 'memset') AND NOT coalesce(e.is_counted, false) AND e.time_fault IS NULL
    GROUP BY ALL
),
classed AS (
    SELECT
        s.*,
        s.kind = 'kernel' AND (
            n.class = 'collective' OR s.is_argued AND n.rule_source <> 'user'
        ) AS is_collective
    FROM sums AS s
    LEFT JOIN v1._kernel_class AS n ON n.name = s.name
)
SELECT
    e.capture_id,
    e.device_id,
    e.context_id,
    e.stream_id,
    CASE
        WHEN 2 * coalesce(sum(e.total_ns) FILTER (e.is_collective), 0) >= sum(e.total_ns)
            AND count(*) FILTER (e.is_collective) > 0
            THEN 'communication'
        ELSE 'compute'
    END AS category
FROM classed AS e
GROUP BY e.capture_id, e.device_id, e.context_id, e.stream_id;
