-- Every range as nsys stats counts it: named by domain and text; a range that is still open ends at the last recorded
-- time of ranges and marks of its file.
-- Grain: range with a start and an end. Calls of MPI, cuBLAS and others that the ingester stores as ranges are
-- excluded, because nsys has separate reports for them; record_function ranges of other profilers are included.
CREATE VIEW v1._nsys_range AS
WITH lasts AS (
    SELECT
        c.capture_id,
        greatest(
            any_value(CASE WHEN json_valid(c.metadata) THEN TRY_CAST(c.metadata ->> '$.last_annotation_ns' AS BIGINT) END),
            max(a.start_ns + coalesce(a.duration_ns, 0))
        ) AS last_ns
    FROM main.capture AS c
    INNER JOIN main.annotation AS a ON a.capture_id = c.capture_id AND a.time_fault IS NULL
    GROUP BY c.capture_id
)
SELECT
    a.capture_id, a.annotation_id,
    c.source, c.rank, c.labels,
    a.name, a.domain, a.style,
    CASE WHEN a.domain IS NULL THEN a.name ELSE a.domain || ':' || a.name END AS nsys_name,
    CASE a.style WHEN 'push_pop' THEN 'PushPop' WHEN 'start_end' THEN 'StartEnd' ELSE 'User' END AS nsys_style,
    a.process_id, a.thread_id, a.start_ns,
    CASE WHEN a.is_open THEN t.last_ns - a.start_ns ELSE a.duration_ns END AS duration_ns,
    a.parent_id, a.depth
FROM main.annotation AS a
LEFT JOIN main.capture AS c ON c.capture_id = a.capture_id
LEFT JOIN lasts AS t ON t.capture_id = a.capture_id
WHERE
    (a.style IN ('push_pop', 'start_end') OR (a.style = 'user' AND c.source <> 'nsys'))
    AND a.time_fault IS NULL;
