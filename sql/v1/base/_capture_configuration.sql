-- Which captures are of one configuration: equal labels less the rank, by one profiler.
-- Grain: capture. configuration_id is the lowest capture number of the configuration.
-- A label that says where a rank stands (tp, dp, pp … in dp0_tp1_rank1) is no part of the configuration: it counts from
-- 0 among captures that are alike but for such labels, while a size (tp=8) is never 0.
-- Where the session variable captures holds numbers of captures (SET VARIABLE captures = [1, 3], which `tracedb report
-- --capture` does), there are no others: the ranks of one of several runs are matched with each other.
CREATE VIEW v1._capture_configuration AS
WITH entries AS (
    SELECT c.capture_id, c.source, unnest(map_entries(c.labels)) AS entry
    FROM main.capture AS c
),
labelled AS (
    SELECT
        n.capture_id, n.source, n.entry,
        n.entry.key IN ('tp', 'dp', 'pp', 'ep', 'cp', 'sp', 'mp', 'dcp', 'pcp', 'edp', 'etp', 'vpp') AS is_parallel
    FROM entries AS n
    WHERE n.entry.key <> 'rank'
),
alike AS (
    SELECT n.capture_id, list(n.entry ORDER BY n.entry.key) FILTER (NOT n.is_parallel) AS others
    FROM labelled AS n
    GROUP BY n.capture_id
),
judged AS (
    SELECT
        n.capture_id, n.entry,
        n.is_parallel AND bool_or(n.entry.value = '0') OVER (PARTITION BY n.source, n.entry.key, a.others) AS is_place
    FROM labelled AS n
    INNER JOIN alike AS a ON a.capture_id = n.capture_id
),
configurations AS (
    SELECT j.capture_id, map_from_entries(list(j.entry ORDER BY j.entry.key)) AS labels
    FROM judged AS j
    WHERE NOT j.is_place
    GROUP BY j.capture_id
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
LEFT JOIN configurations AS f ON f.capture_id = c.capture_id
WHERE coalesce(list_contains(getvariable('captures')::INTEGER[], c.capture_id), true);
