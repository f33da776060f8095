-- Which name does a module have in its model, as recorded? Grain: capture × module path that a range names. Frames have
-- classes and numbers only, but FSDP opens a range with the name, FSDP::pre_forward (layers.3), first in the call of a
-- module. A path that several names claim has none.
CREATE VIEW v1._module_name AS
WITH named AS (
    SELECT
        a.capture_id, a.process_id, a.thread_id, a.start_ns,
        regexp_extract(a.name, '^FSDP::pre_forward \((.+)\)$', 1) AS name
    FROM main.annotation AS a
    WHERE starts_with(a.name, 'FSDP::pre_forward (') AND a.style <> 'gpu_projection'
),
called AS (
    SELECT n.capture_id, f.module_path, n.name
    FROM named AS n
    ASOF INNER JOIN (
        SELECT
            m.capture_id, m.process_id, m.thread_id, m.start_ns, m.module_path,
            coalesce(m.start_ns + m.duration_ns, 9223372036854775807) AS end_ns
        FROM main.frame AS m
        WHERE m.kind = 'module'
        QUALIFY row_number() OVER (
            PARTITION BY m.capture_id, m.process_id, m.thread_id, m.start_ns ORDER BY m.duration_ns, m.frame_id DESC
        ) = 1
    ) AS f
        ON f.capture_id = n.capture_id AND v1._asof_key(f.process_id) = v1._asof_key(n.process_id)
        AND v1._asof_key(f.thread_id) = v1._asof_key(n.thread_id) AND f.start_ns <= n.start_ns
    WHERE f.end_ns >= n.start_ns AND n.name <> ''
)
SELECT c.capture_id, c.module_path, any_value(c.name) AS name
FROM called AS c
GROUP BY c.capture_id, c.module_path
HAVING count(DISTINCT c.name) = 1;
