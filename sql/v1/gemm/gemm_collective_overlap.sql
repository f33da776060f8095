-- Which collectives overlap which GEMMs, and for how long?
-- Grain: GEMM × collective on the same device of the same capture, if the collective starts before the GEMM ends and
-- ends after it starts; the predicate of gemm_variance and overlap_effect. Method: in such a pair either the collective
-- starts during the GEMM or the GEMM starts during the collective. Both are numbered by start, so the events that start
-- in an interval are consecutive numbers, whose bounds are found by sorted passes (ASOF). The cost is proportional to
-- the size of the answer; an inequality join would compare every GEMM of a capture with every collective.
CREATE VIEW v1.gemm_collective_overlap AS
WITH gemms AS (
    SELECT
        /* by e */
        e.capture_id AS clock_id,
        e.device_id AS gpu_id,
        e.event_id,
        e.op_id,
        e.name,
        e.stream_id,
        e.start_ns,
        e.end_ns,
        row_number() OVER (PARTITION BY e.capture_id, e.device_id ORDER BY e.start_ns, e.event_id) AS place
    FROM v1._gpu_event AS e /* join e */
    WHERE e.kind = 'kernel' AND e.class = 'matmul' /* filter e */
),
collectives AS (
    SELECT
        a.capture_id AS clock_id,
        a.device_id AS gpu_id,
        a.event_id,
        a.name,
        a.collective,
        a.stream_id,
        a.start_ns,
        a.end_ns,
        row_number() OVER (PARTITION BY a.capture_id, a.device_id ORDER BY a.start_ns, a.event_id) AS place
    FROM v1._gpu_event AS a
    WHERE a.kind = 'kernel' AND a.class = 'collective'
),
-- How many have started before a given time: the highest number at the last start before it.
gemm_starts AS (
    SELECT clock_id, gpu_id, start_ns, max(place) AS started
    FROM gemms
    GROUP BY clock_id, gpu_id, start_ns
),
collective_starts AS (
    SELECT clock_id, gpu_id, start_ns, max(place) AS started
    FROM collectives
    GROUP BY clock_id, gpu_id, start_ns
),
started_in_gemm AS (
    SELECT
        g.clock_id,
        g.gpu_id,
        g.place AS gemm_place,
        unnest(range(coalesce(b.started, 0) + 1, u.started + 1)) AS collective_place
    FROM gemms AS g
    ASOF INNER JOIN collective_starts AS u
        ON u.clock_id = g.clock_id AND v1._asof_key(u.gpu_id) = v1._asof_key(g.gpu_id) AND u.start_ns < g.end_ns
    ASOF LEFT JOIN collective_starts AS b
        ON b.clock_id = g.clock_id AND v1._asof_key(b.gpu_id) = v1._asof_key(g.gpu_id) AND b.start_ns < g.start_ns
),
started_in_collective AS (
    SELECT
        a.clock_id,
        a.gpu_id,
        unnest(range(coalesce(b.started, 0) + 1, u.started + 1)) AS gemm_place,
        a.place AS collective_place
    FROM collectives AS a
    ASOF INNER JOIN gemm_starts AS u
        ON u.clock_id = a.clock_id AND v1._asof_key(u.gpu_id) = v1._asof_key(a.gpu_id) AND u.start_ns < a.end_ns
    ASOF LEFT JOIN gemm_starts AS b
        ON b.clock_id = a.clock_id AND v1._asof_key(b.gpu_id) = v1._asof_key(a.gpu_id) AND b.start_ns <= a.start_ns
),
pairs AS (
    SELECT clock_id, gpu_id, gemm_place, collective_place
    FROM started_in_gemm
    UNION ALL
    SELECT clock_id, gpu_id, gemm_place, collective_place
    FROM started_in_collective
)
SELECT
    /* by g */
    p.clock_id AS capture_id, c.rank, c.labels, p.gpu_id AS device_id,
    g.event_id AS gemm_event_id,
    a.event_id AS collective_event_id,
    g.name AS gemm_name,
    o.input_dims,
    a.name AS collective_name,
    a.collective,
    g.stream_id AS gemm_stream_id,
    a.stream_id AS collective_stream_id,
    g.start_ns AS gemm_start_ns,
    g.end_ns - g.start_ns AS gemm_duration_ns,
    a.start_ns AS collective_start_ns,
    a.end_ns - a.start_ns AS collective_duration_ns,
    least(g.end_ns, a.end_ns) - greatest(g.start_ns, a.start_ns) AS overlap_ns,
    100.0 * overlap_ns / nullif(gemm_duration_ns, 0) AS gemm_overlap_percent
FROM pairs AS p
INNER JOIN gemms AS g
    ON g.clock_id = p.clock_id AND g.gpu_id IS NOT DISTINCT FROM p.gpu_id AND g.place = p.gemm_place
INNER JOIN collectives AS a
    ON a.clock_id = p.clock_id AND a.gpu_id IS NOT DISTINCT FROM p.gpu_id AND a.place = p.collective_place
LEFT JOIN main.op AS o ON o.capture_id = g.clock_id AND o.op_id = g.op_id
LEFT JOIN main.capture AS c ON c.capture_id = g.clock_id
WHERE g.start_ns < a.end_ns AND g.end_ns > a.start_ns;

COMMENT ON VIEW v1.gemm_collective_overlap IS 'Every GEMM with every collective that overlaps it. Grain: GEMM × collective on the same device.';
COMMENT ON COLUMN v1.gemm_collective_overlap.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN v1.gemm_collective_overlap.rank IS 'Rank of the capture; NULL if unknown. [-]';
COMMENT ON COLUMN v1.gemm_collective_overlap.labels IS 'Labels of the capture: sweep, threads, channels and others.';
COMMENT ON COLUMN v1.gemm_collective_overlap.device_id IS 'Device number within the capture. [-]';
COMMENT ON COLUMN v1.gemm_collective_overlap.gemm_event_id IS 'The GEMM (kernel_event.event_id). [-]';
COMMENT ON COLUMN v1.gemm_collective_overlap.collective_event_id IS 'The collective (kernel_event.event_id). [-]';
COMMENT ON COLUMN v1.gemm_collective_overlap.gemm_name IS 'Kernel name of the GEMM as recorded.';
COMMENT ON COLUMN v1.gemm_collective_overlap.input_dims IS 'Input shapes of the launching operator, as JSON text as recorded; NULL if not recorded.';
COMMENT ON COLUMN v1.gemm_collective_overlap.collective_name IS 'Kernel name of the collective as recorded.';
COMMENT ON COLUMN v1.gemm_collective_overlap.collective IS 'Name of the collective as recorded with the event; NULL if not recorded.';
COMMENT ON COLUMN v1.gemm_collective_overlap.gemm_stream_id IS 'Stream of the GEMM. [-]';
COMMENT ON COLUMN v1.gemm_collective_overlap.collective_stream_id IS 'Stream of the collective. [-]';
COMMENT ON COLUMN v1.gemm_collective_overlap.gemm_start_ns IS 'Start of the GEMM, on the capture''s clock. [ns]';
COMMENT ON COLUMN v1.gemm_collective_overlap.gemm_duration_ns IS 'Duration of the GEMM. [ns]';
COMMENT ON COLUMN v1.gemm_collective_overlap.collective_start_ns IS 'Start of the collective, on the capture''s clock. [ns]';
COMMENT ON COLUMN v1.gemm_collective_overlap.collective_duration_ns IS 'Duration of the collective. [ns]';
COMMENT ON COLUMN v1.gemm_collective_overlap.overlap_ns IS 'Time during which both run. [ns]';
COMMENT ON COLUMN v1.gemm_collective_overlap.gemm_overlap_percent IS 'Share of the GEMM''s duration during which the collective runs; NULL for a GEMM of zero duration. [percent]';
