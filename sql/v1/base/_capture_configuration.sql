-- Which captures belong to one configuration: equal labels except for the rank, and the same profiler.
-- Grain: capture. configuration_id is the lowest capture number of the configuration.
-- Labels that give the coordinates of a rank (tp, dp, pp … in dp0_tp1_rank1) are not part of the configuration. They
-- are recognised because they count from 0 among captures that otherwise have equal labels; a size (tp=8) is never 0.
-- If the session variable captures holds capture numbers (SET VARIABLE captures = [1, 3], as set by `tracedb report
-- --capture`), all other captures are ignored, so that the ranks of one run among several are matched with each other.
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
    SELECT j.capture_id, list(j.entry ORDER BY j.entry.key) AS entries
    FROM judged AS j
    WHERE NOT j.is_place
    GROUP BY j.capture_id
)
SELECT
    c.capture_id,
    min(c.capture_id) OVER (PARTITION BY c.source, f.entries) AS configuration_id,
    c.source,
    coalesce(map_from_entries(f.entries), MAP {}) AS labels,
    c.rank,
    c.status,
    c.path,
    c.clock_zero_unix_ns
FROM main.capture AS c
LEFT JOIN configurations AS f ON f.capture_id = c.capture_id
WHERE coalesce(list_contains(getvariable('captures')::BIGINT[], c.capture_id), true);
