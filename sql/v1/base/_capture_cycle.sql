-- If ranks have several recordings with equal labels (a profiler schedule with repeat, or runs without labels), which
-- recordings belong together?
-- Grain: capture with GPU work, in a configuration in which a rank occurs more than once. cycle counts from 1 in
-- recording order; NULL if it cannot be determined, so the rank occurs twice. The first method that applies is used:
-- path: paths are equal except for the rank, and each such path exists for every rank.
-- step: by marked steps, if the recordings of a rank have no step in common.
-- time: by time, if the recordings of a rank follow each other. Recordings that overlap in steps or time are in one
-- cycle. If a cycle then has a rank twice (clocks that are apart, back-to-back cycles), or no cycle has two ranks, the
-- k-th recordings of all ranks belong together, provided that all ranks have equally many.
CREATE VIEW v1._capture_cycle AS
WITH counted AS (
    SELECT
        g.capture_id, g.configuration_id, g.rank, g.is_apart, g.first_ns, g.overlap_no, g.place_in_rank, g.recordings,
        count(*) OVER (PARTITION BY g.configuration_id, g.overlap_no, g.rank) AS recordings_here,
        count(DISTINCT g.rank) OVER (PARTITION BY g.configuration_id, g.overlap_no) AS ranks_here
    FROM v1._recording_overlap AS g
),
judged AS (
    SELECT
        configuration_id,
        NOT bool_or(is_apart) AND max(recordings_here) = 1 AND (max(ranks_here) > 1 OR count(DISTINCT rank) = 1)
            AS is_by_overlap,
        min(recordings) = max(recordings) AS is_by_place
    FROM counted
    GROUP BY configuration_id
),
keyed AS (
    SELECT
        c.capture_id, c.configuration_id, c.first_ns,
        CASE WHEN j.is_by_overlap THEN c.overlap_no WHEN j.is_by_place THEN c.place_in_rank END AS key
    FROM counted AS c
    INNER JOIN judged AS j ON j.configuration_id = c.configuration_id
),
begins AS (
    SELECT configuration_id, key, min(first_ns) AS first_ns
    FROM keyed
    WHERE key IS NOT NULL
    GROUP BY configuration_id, key
)
SELECT
    k.capture_id,
    dense_rank() OVER (PARTITION BY k.configuration_id ORDER BY b.first_ns, b.key) AS cycle
FROM keyed AS k
INNER JOIN begins AS b ON b.configuration_id = k.configuration_id AND b.key = k.key;
