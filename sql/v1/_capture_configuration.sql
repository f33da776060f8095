-- Which captures are of one configuration: equal labels less the rank, by one profiler.
-- Grain: capture. configuration_id is the lowest capture number of the configuration.
CREATE VIEW v1._capture_configuration AS
WITH entries AS (
    SELECT c.capture_id, unnest(map_entries(c.labels)) AS entry
    FROM main.capture AS c
),
configurations AS (
    SELECT n.capture_id, map_from_entries(list(n.entry ORDER BY n.entry.key)) AS labels
    FROM entries AS n
    WHERE n.entry.key <> 'rank'
    GROUP BY n.capture_id
)
SELECT
    c.capture_id,
    min(c.capture_id) OVER (PARTITION BY c.source, coalesce(f.labels, MAP {})) AS configuration_id,
    c.source,
    coalesce(f.labels, MAP {}) AS labels,
    c.rank,
    c.status,
    c.path,
    c.clock_zero_unix_ns
FROM main.capture AS c
LEFT JOIN configurations AS f ON f.capture_id = c.capture_id;
