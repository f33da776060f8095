-- Every range and mark with its capture: the base of the views over NVTX, roctx and record_function ranges.
-- Grain: annotation made by the program. Excludes projections onto the GPU made by the profiler itself, and ranges with
-- impossible times (time_fault).
CREATE VIEW v1._range AS
SELECT
    a.capture_id, a.annotation_id,
    c.source, c.rank, c.labels,
    a.name, a.domain, a.style, a.process_id, a.thread_id,
    a.start_ns, a.duration_ns, a.is_open, a.parent_id, a.depth
FROM main.annotation AS a
LEFT JOIN main.capture AS c ON c.capture_id = a.capture_id
WHERE a.style <> 'gpu_projection' AND a.time_fault IS NULL;
