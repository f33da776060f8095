-- The time variance of GEMMs, with the columns of the scripts of ROCm/aorta, and what overlapped the extreme calls.
-- In:  temp table export_answer (report gemm-variance: a GEMM of one capture, device and shape), variable variance_top:
--      number per capture, 0 for all.
-- Out: temp views time_variance, time_variance_with_timestamps and time_variance_with_collective_overlap: the
--      original's three files, each with the columns of the previous one, followed by columns that the original lacks.
-- The variance of the original is the longest minus the shortest duration. Here the longest call is one of exactly this
-- shape, not of any kernel whose name starts alike; the min_… columns are the control that the original lacks.
CREATE OR REPLACE TEMP TABLE variance_chosen AS
SELECT
    row_number() OVER (ORDER BY a.spread_ns DESC, a.capture_id, a.device_id, a.name, a.input_dims) AS place,
    a.capture_id, a.rank, a.labels, a.device_id, a.name, a.input_dims, a.calls, a.mean_ns, a.stddev_ns, a.cv_percent,
    a.min_ns, a.max_ns, a.spread_ns, a.p50_ns, a.p95_ns, a.p99_ns, a.start_of_min_ns, a.start_of_max_ns,
    a.overlapped_calls, a.alone_calls, a.slowdown, a.verdict
FROM temp.export_answer AS a
QUALIFY getvariable('variance_top') = 0 OR row_number() OVER (
    PARTITION BY a.capture_id ORDER BY a.spread_ns DESC, a.device_id, a.name, a.input_dims
) <= getvariable('variance_top');

CREATE OR REPLACE TEMP TABLE variance_overlap AS
WITH extremes AS (
    SELECT c.place, true AS is_max, c.capture_id, c.device_id, c.start_of_max_ns AS start_ns, c.start_of_max_ns + c.max_ns AS end_ns
    FROM temp.variance_chosen AS c
    UNION ALL
    SELECT c.place, false, c.capture_id, c.device_id, c.start_of_min_ns, c.start_of_min_ns + c.min_ns
    FROM temp.variance_chosen AS c
),

pairs AS (
    SELECT
        x.place, x.is_max, k.name, k.event_id, x.start_ns AS gemm_start_ns, x.end_ns AS gemm_end_ns,
        greatest(k.start_ns, x.start_ns) AS from_ns,
        least(k.end_ns, x.end_ns) AS to_ns
    FROM extremes AS x
    INNER JOIN v1._gpu_event AS k
        ON k.capture_id = x.capture_id AND k.device_id IS NOT DISTINCT FROM x.device_id
        AND k.start_ns < x.end_ns AND k.end_ns > x.start_ns
    WHERE k.kind = 'kernel' AND k.class = 'collective'
),

reaches AS (
    SELECT
        place, is_max, name, event_id, gemm_start_ns, gemm_end_ns, from_ns, to_ns,
        coalesce(max(to_ns) OVER (
            PARTITION BY place, is_max ORDER BY from_ns, to_ns, event_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ), from_ns) AS reach_ns
    FROM pairs
)

SELECT
    place, is_max,
    count(*) AS collectives,
    string_agg(name, ';' ORDER BY from_ns, event_id) AS names,
    max(100.0 * (to_ns - from_ns) / nullif(gemm_end_ns - gemm_start_ns, 0)) AS max_percent,
    arg_max(name, (to_ns - from_ns, -from_ns, -event_id)) AS longest,
    sum(greatest(to_ns, reach_ns) - greatest(from_ns, reach_ns))::BIGINT AS union_ns
FROM reaches
GROUP BY place, is_max;

CREATE OR REPLACE TEMP VIEW time_variance_with_collective_overlap AS
SELECT
    c.labels['threads'] AS threads,
    c.labels['channels'] AS channel,
    c.rank,
    c.name AS kernel_name,
    c.min_ns / 1e3 AS kernel_time_min_us,
    c.max_ns / 1e3 AS kernel_time_max_us,
    c.spread_ns / 1e3 AS time_diff_us,
    c.start_of_min_ns / 1e6 AS min_duration_timestamp_ms,
    c.start_of_max_ns / 1e6 AS max_duration_timestamp_ms,
    abs(c.start_of_max_ns - c.start_of_min_ns) / 1e6 AS time_between_min_max_ms,
    c.min_ns / 1e3 AS min_duration_found_us,
    c.max_ns / 1e3 AS max_duration_found_us,
    -- NULL if the capture has no collectives at all, because their effect is unknown then.
    CASE WHEN c.verdict <> 'no collectives' THEN coalesce(m.collectives, 0) END AS overlapping_collective_count,
    m.names AS overlapping_collective_names,
    CASE WHEN c.verdict <> 'no collectives' THEN coalesce(m.max_percent, 0) END AS max_overlap_percentage,
    m.longest AS max_overlap_collective,
    CASE WHEN c.verdict <> 'no collectives' THEN coalesce(m.union_ns, 0) / 1e6 END AS total_overlap_duration_ms,
    CASE WHEN c.verdict <> 'no collectives' THEN coalesce(l.collectives, 0) END AS min_overlapping_collective_count,
    CASE WHEN c.verdict <> 'no collectives' THEN coalesce(l.max_percent, 0) END AS min_max_overlap_percentage,
    CASE WHEN c.verdict <> 'no collectives' THEN coalesce(l.union_ns, 0) / 1e6 END AS min_total_overlap_duration_ms,
    c.labels['sweep'] AS sweep,
    c.device_id,
    c.input_dims,
    c.calls,
    c.mean_ns / 1e3 AS mean_us,
    c.stddev_ns / 1e3 AS stddev_us,
    c.cv_percent,
    c.p50_ns / 1e3 AS p50_us,
    c.p95_ns / 1e3 AS p95_us,
    c.p99_ns / 1e3 AS p99_us,
    c.overlapped_calls,
    c.alone_calls,
    c.slowdown,
    c.verdict,
    p.path AS source_file
FROM temp.variance_chosen AS c
LEFT JOIN temp.variance_overlap AS m ON m.place = c.place AND m.is_max
LEFT JOIN temp.variance_overlap AS l ON l.place = c.place AND NOT l.is_max
LEFT JOIN main.capture AS p ON p.capture_id = c.capture_id
ORDER BY c.place;

CREATE OR REPLACE TEMP VIEW time_variance_with_timestamps AS
SELECT * EXCLUDE (
    overlapping_collective_count, overlapping_collective_names, max_overlap_percentage, max_overlap_collective,
    total_overlap_duration_ms, min_overlapping_collective_count, min_max_overlap_percentage, min_total_overlap_duration_ms
)
FROM temp.time_variance_with_collective_overlap;

CREATE OR REPLACE TEMP VIEW time_variance AS
SELECT * EXCLUDE (
    min_duration_timestamp_ms, max_duration_timestamp_ms, time_between_min_max_ms, min_duration_found_us,
    max_duration_found_us
)
FROM temp.time_variance_with_timestamps;
