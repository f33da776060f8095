-- What was recorded: the selected captures. Grain: capture. What a capture does not have is NULL.
WITH gpu AS (
    SELECT
        e.capture_id,
        count(*) FILTER (e.kind = 'kernel') AS kernels,
        count(*) FILTER (e.kind IN ('memcpy', 'memset')) AS copies,
        max(e.start_ns + e.duration_ns) - min(e.start_ns) AS span_ns
    FROM main.kernel_event AS e
    WHERE e.time_fault IS NULL
    GROUP BY e.capture_id
),
gpu_name AS (
    SELECT d.capture_id, string_agg(DISTINCT d.name, ', ' ORDER BY d.name) AS devices
    FROM main.device AS d
    WHERE d.is_used
    GROUP BY d.capture_id
),
issue AS (
    SELECT i.capture_id, sum(i.count)::BIGINT AS warnings
    FROM main.ingest_issue AS i
    WHERE i.severity = 'warning'
    GROUP BY i.capture_id
)
SELECT
    s.capture_id,
    s.path,
    s.source,
    s.rank,
    s.labels,
    gpu_name.devices,
    s.status,
    nullif(gpu.kernels, 0) AS kernels,
    nullif(gpu.copies, 0) AS copies,
    gpu.span_ns,
    s.events_read,
    s.events_skipped,
    coalesce(issue.warnings, 0) AS warnings
FROM temp.selected_capture AS s
LEFT JOIN gpu ON gpu.capture_id = s.capture_id
LEFT JOIN gpu_name ON gpu_name.capture_id = s.capture_id
LEFT JOIN issue ON issue.capture_id = s.capture_id
ORDER BY s.capture_id
