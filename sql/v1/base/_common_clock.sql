-- How is a time of a capture converted to the common clock of its run?
-- Grain: capture. The converted time is start_ns + zero_ns - offset_ns - round((start_ns + zero_ns - offset_ns - at_ns)
-- * stretch), as in v1._collective_instance. `aligned`: main.clock_alignment relates all captures of the run with GPU
-- activity to one reference, or there is only one capture. `recorded`: clocks are comparable as recorded, because all
-- zeros are known or none is. `incomparable`: only some zeros are known, so times of different captures cannot be
-- compared.
CREATE VIEW v1._common_clock AS
WITH parts AS (
    SELECT
        s.capture_id, s.set_id, s.cycle,
        s.clock_zero_unix_ns,
        a.reference_capture_id, a.offset_ns, a.at_ns,
        CASE WHEN a.uses_drift THEN a.drift_ppm / 1e6 / (1 + a.drift_ppm / 1e6) ELSE 0 END AS stretch,
        c.status <> 'no_gpu_activity' AS is_active
    FROM v1._capture_set AS s
    INNER JOIN main.capture AS c ON c.capture_id = s.capture_id
    LEFT JOIN main.clock_alignment AS a ON a.capture_id = s.capture_id
),
sets AS (
    SELECT
        set_id,
        count(*) FILTER (is_active) <= 1 OR count(reference_capture_id) FILTER (is_active) = count(*) FILTER (is_active)
            AND min(reference_capture_id) FILTER (is_active) = max(reference_capture_id) FILTER (is_active) AS is_aligned,
        count(clock_zero_unix_ns) FILTER (is_active) IN (0, count(*) FILTER (is_active)) AS is_comparable
    FROM parts
    GROUP BY set_id
)
SELECT
    p.capture_id,
    p.set_id,
    p.cycle,
    CASE WHEN k.is_aligned THEN 'aligned' WHEN k.is_comparable THEN 'recorded' ELSE 'incomparable' END AS clock,
    coalesce(p.clock_zero_unix_ns, 0) AS zero_ns,
    CASE WHEN k.is_aligned THEN coalesce(p.offset_ns, 0) ELSE 0 END AS offset_ns,
    CASE WHEN k.is_aligned AND p.offset_ns IS NOT NULL THEN p.at_ns ELSE 0 END AS at_ns,
    CASE WHEN k.is_aligned AND p.offset_ns IS NOT NULL THEN p.stretch ELSE 0 END AS stretch
FROM parts AS p
INNER JOIN sets AS k ON k.set_id = p.set_id;
