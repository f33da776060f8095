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
WITH recordings AS (
    SELECT
        c.capture_id, c.configuration_id, c.rank, c.clock_zero_unix_ns,
        regexp_replace(coalesce(c.path, ''), '(rank|worker)[-_=. ]?[0-9]+', '\1', 'gi') AS common_path,
        count(*) OVER (PARTITION BY c.configuration_id, c.rank) AS recordings
    FROM v1._capture_configuration AS c
    WHERE c.rank IS NOT NULL AND c.status IS DISTINCT FROM 'no_gpu_activity'
),
repeated AS (
    SELECT r.capture_id, r.configuration_id, r.rank, r.clock_zero_unix_ns, r.common_path
    FROM recordings AS r
    QUALIFY max(r.recordings) OVER (PARTITION BY r.configuration_id) > 1
),
spans AS (
    SELECT e.capture_id, min(e.start_ns) AS first_ns, max(e.start_ns + e.duration_ns) AS last_ns
    FROM main.kernel_event AS e
    SEMI JOIN repeated AS r ON r.capture_id = e.capture_id
    WHERE e.time_fault IS NULL
    GROUP BY e.capture_id
),
steps AS (
    SELECT
        a.capture_id,
        min(TRY_CAST(regexp_extract(a.name, '^ProfilerStep#([0-9]+)$', 1) AS BIGINT)) AS first_step,
        max(TRY_CAST(regexp_extract(a.name, '^ProfilerStep#([0-9]+)$', 1) AS BIGINT)) AS last_step
    FROM main.annotation AS a
    SEMI JOIN repeated AS r ON r.capture_id = a.capture_id
    WHERE a.name LIKE 'ProfilerStep#%' AND a.style NOT IN ('mark', 'gpu_projection')
        AND a.time_fault IS NULL
    GROUP BY a.capture_id
),
facts AS (
    SELECT
        r.capture_id, r.configuration_id, r.rank,
        r.clock_zero_unix_ns IS NOT NULL AS has_zero,
        dense_rank() OVER (PARTITION BY r.configuration_id ORDER BY r.common_path) AS path_no,
        count(*) OVER (PARTITION BY r.configuration_id, r.rank, r.common_path) AS same_paths,
        count(*) OVER (PARTITION BY r.configuration_id, r.common_path) AS ranks_of_path,
        s.first_step, s.last_step,
        t.first_ns + coalesce(r.clock_zero_unix_ns, 0) AS first_ns,
        t.last_ns + coalesce(r.clock_zero_unix_ns, 0) AS last_ns
    FROM repeated AS r
    LEFT JOIN steps AS s ON s.capture_id = r.capture_id
    LEFT JOIN spans AS t ON t.capture_id = r.capture_id
),
followed AS (
    SELECT
        f.capture_id, f.configuration_id, f.rank, f.has_zero, f.path_no, f.same_paths, f.ranks_of_path,
        f.first_step, f.last_step, f.first_ns, f.last_ns,
        lead(f.first_step) OVER (PARTITION BY f.configuration_id, f.rank ORDER BY f.first_step, f.capture_id) AS next_step,
        lead(f.first_ns) OVER (PARTITION BY f.configuration_id, f.rank ORDER BY f.first_ns, f.capture_id) AS next_ns
    FROM facts AS f
),
axes AS (
    SELECT
        configuration_id,
        bool_and(has_zero) OR NOT bool_or(has_zero) AS is_comparable,
        CASE
            WHEN max(same_paths) = 1 AND min(ranks_of_path) = count(DISTINCT rank) AND count(DISTINCT rank) > 1 THEN 'path'
            WHEN bool_and(first_step IS NOT NULL AND coalesce(next_step > last_step, true)) THEN 'step'
            WHEN bool_and(first_ns IS NOT NULL AND coalesce(next_ns >= last_ns, true)) THEN 'time'
        END AS axis
    FROM followed
    GROUP BY configuration_id
),
placed AS (
    SELECT
        f.capture_id, f.configuration_id, f.rank,
        x.axis = 'time' AND NOT x.is_comparable AS is_apart,
        CASE x.axis WHEN 'path' THEN f.path_no WHEN 'step' THEN f.first_step ELSE f.first_ns END AS from_place,
        CASE x.axis WHEN 'path' THEN f.path_no WHEN 'step' THEN f.last_step ELSE f.last_ns END AS to_place,
        f.first_ns
    FROM followed AS f
    INNER JOIN axes AS x ON x.configuration_id = f.configuration_id
    WHERE x.axis IS NOT NULL
),
begun AS (
    SELECT
        p.capture_id, p.configuration_id, p.rank, p.is_apart, p.from_place, p.first_ns,
        coalesce(p.from_place > max(p.to_place) OVER (
            PARTITION BY p.configuration_id ORDER BY p.from_place, p.to_place, p.capture_id
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ), false) AS begins_another,
        p.to_place
    FROM placed AS p
),
grouped AS (
    SELECT
        b.capture_id, b.configuration_id, b.rank, b.is_apart, b.first_ns,
        sum(b.begins_another::INTEGER) OVER (
            PARTITION BY b.configuration_id ORDER BY b.from_place, b.to_place, b.capture_id
        ) AS overlap_no,
        row_number() OVER (
            PARTITION BY b.configuration_id, b.rank ORDER BY b.from_place, b.to_place, b.capture_id
        ) AS place_in_rank,
        count(*) OVER (PARTITION BY b.configuration_id, b.rank) AS recordings
    FROM begun AS b
),
counted AS (
    SELECT
        g.capture_id, g.configuration_id, g.rank, g.is_apart, g.first_ns, g.overlap_no, g.place_in_rank, g.recordings,
        count(*) OVER (PARTITION BY g.configuration_id, g.overlap_no, g.rank) AS recordings_here,
        count(DISTINCT g.rank) OVER (PARTITION BY g.configuration_id, g.overlap_no) AS ranks_here
    FROM grouped AS g
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
