-- When did each recording of a rank run that has several with equal labels, and in which steps?
-- Grain: capture with GPU work, in a configuration in which a rank occurs more than once. path_no numbers the paths of a
-- configuration without their rank. next_step and next_ns are where the rank's next recording begins. Times are Unix
-- time if the zero of the capture's clock is known (has_zero), else those of its own clock.
CREATE VIEW v1._repeated_recording AS
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
)
SELECT
    f.capture_id, f.configuration_id, f.rank, f.has_zero, f.path_no, f.same_paths, f.ranks_of_path,
    f.first_step, f.last_step, f.first_ns, f.last_ns,
    lead(f.first_step) OVER (PARTITION BY f.configuration_id, f.rank ORDER BY f.first_step, f.capture_id) AS next_step,
    lead(f.first_ns) OVER (PARTITION BY f.configuration_id, f.rank ORDER BY f.first_ns, f.capture_id) AS next_ns
FROM facts AS f;
