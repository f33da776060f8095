-- Which captures count as a configuration of their own although they look like ranks of another one? Labels decide what
-- belongs together, so a label of one rank alone (tracedb label 5 note=bad), or a rank loaded without labels that the
-- others were given, splits a run: its ranks are no longer matched, and its steps count twice.
-- Grain: configuration × other configuration of the same profiler and world size whose labels are part of its own, and
-- which has other ranks; together they are no more ranks than the world has. odd_ids: the captures of the smaller of
-- the two; is_extra: whether they have more labels than the others, rather than fewer; pairs: the labels in question.
CREATE VIEW v1._split_configuration AS
WITH configurations AS (
    SELECT
        f.configuration_id,
        f.source,
        m.world_size,
        map_entries(any_value(f.labels)) AS entries,
        list(DISTINCT f.rank ORDER BY f.rank) AS ranks,
        list(f.capture_id ORDER BY f.capture_id) AS capture_ids
    FROM v1._capture_configuration AS f
    INNER JOIN main.capture AS m ON m.capture_id = f.capture_id
    WHERE f.rank IS NOT NULL AND f.status IS DISTINCT FROM 'no_gpu_activity'
    GROUP BY f.configuration_id, f.source, m.world_size
),
pairs AS (
    SELECT
        more,
        fewer,
        len(more.capture_ids) <= len(fewer.capture_ids) AS is_extra,
        [entry FOR entry IN more.entries IF NOT list_contains(fewer.entries, entry)] AS extra
    FROM configurations AS more
    INNER JOIN configurations AS fewer
        ON fewer.source = more.source
        AND fewer.world_size IS NOT DISTINCT FROM more.world_size
        AND len(fewer.entries) < len(more.entries)
        AND list_has_all(more.entries, fewer.entries)
        AND NOT list_has_any(more.ranks, fewer.ranks)
        AND coalesce(len(more.ranks) + len(fewer.ranks) <= more.world_size, true)
)
SELECT
    is_extra,
    CASE WHEN is_extra THEN more.capture_ids ELSE fewer.capture_ids END AS odd_ids,
    CASE WHEN is_extra THEN more.ranks ELSE fewer.ranks END AS odd_ranks,
    CASE WHEN is_extra THEN fewer.capture_ids ELSE more.capture_ids END AS other_ids,
    CASE WHEN is_extra THEN fewer.ranks ELSE more.ranks END AS other_ranks,
    [entry.key || '=' || entry.value FOR entry IN extra] AS pairs
FROM pairs;
