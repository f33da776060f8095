-- Writes a finished replay into the tables of the schema.
-- In:  temp tables replay_bound, replay_measure, replay_signature; temp tables replay_result(signature_id, status,
--      detail, timing, kernels, kernel_ns, joules, joules_seconds) and replay_sample(signature_id, time_ns); variables
--      replay_id, replay_capture.
-- Out: rows of main.replay and main.replay_pass. What cannot be captured in a graph is timed by its kernels.
INSERT INTO main.replay_pass BY NAME
SELECT getvariable('replay_id') AS replay_id, getvariable('replay_capture') AS capture_id, m.*
FROM temp.replay_measure AS m;

INSERT INTO main.replay BY NAME
WITH times AS (
    SELECT s.signature_id, median(s.time_ns) AS median_ns, mad(s.time_ns) AS mad_ns, count(*) AS samples
    FROM temp.replay_sample AS s
    GROUP BY s.signature_id
),
timed AS (
    SELECT
        r.*,
        t.samples,
        r.timing = 'waits' AND r.kernel_ns > 0 AS is_profiled,
        CASE WHEN r.timing = 'waits' AND r.kernel_ns > 0 THEN r.kernel_ns ELSE t.median_ns END AS replayed_median_ns,
        CASE WHEN r.timing = 'waits' AND r.kernel_ns > 0 THEN NULL ELSE t.mad_ns END AS replayed_mad_ns
    FROM temp.replay_result AS r
    LEFT JOIN times AS t ON t.signature_id = r.signature_id
)
SELECT
    getvariable('replay_id') AS replay_id,
    s.signature_id,
    getvariable('replay_capture') AS capture_id,
    s.name, s.input_dims, s.input_types, s.input_strides, s.concrete_inputs, s.copy_kind, s.bytes,
    s.class, s.tier, s.kernels, s.calls, s.calls_per_pass, s.recorded_total_ns,
    coalesce(s.share_percent, 0) AS share_percent, s.recorded_median_ns, s.recorded_mad_ns,
    t.replayed_median_ns, t.replayed_mad_ns, t.kernel_ns AS replayed_kernel_median_ns,
    t.samples,
    CASE WHEN t.is_profiled THEN 'profiler' WHEN t.timing = 'waits' THEN 'events' ELSE t.timing END AS timing,
    t.replayed_median_ns / nullif(s.recorded_median_ns, 0) AS ratio,
    CASE WHEN t.status = 'replayed' AND t.kernels IS NOT NULL AND s.kernels IS NOT NULL THEN
        t.kernels = s.kernels
    END AS same_kernels,
    t.kernels AS replayed_kernels,
    t.joules, t.joules_seconds,
    t.status, t.detail
FROM temp.replay_signature AS s
INNER JOIN timed AS t ON t.signature_id = s.signature_id;

-- Times of the passes that the database holds beside the trace, if they are of one file, and none was given.
UPDATE main.replay_run SET
    measured_ns = f.time_ns,
    measured_joules = f.joules,
    measured_source = f.path
FROM (
    SELECT
        median(m.time_ns)::DOUBLE AS time_ns,
        avg(TRY_CAST(m.settings['joules'] AS DOUBLE)) AS joules,
        any_value(c.path) AS path
    FROM main.measure AS m
    INNER JOIN main.capture AS c ON c.capture_id = m.capture_id
    WHERE m.statistic IN ('single', 'mean', 'median')
        AND m.name IN (SELECT b.name FROM temp.replay_bound AS b)
        AND (SELECT count(DISTINCT b.name) FROM temp.replay_bound AS b) = 1
    HAVING count(DISTINCT m.capture_id) = 1
) AS f
WHERE replay_id = getvariable('replay_id') AND measured_ns IS NULL;
