-- How long did the GPU work take that each operator launched itself? Grain: operator instance × device. Work launched
-- by a nested operator belongs to that one: to aten::mm, not to the aten::matmul around it, so nothing counts twice.
-- HAVING, which is always true, makes the planner expect fewer rows than operators, and build its hash table of these
-- narrow rows rather than of the operators' texts.
CREATE VIEW v1._launched_op AS
SELECT
    /* by e */
    e.capture_id AS clock_id,
    e.device_id AS gpu_id,
    e.op_id,
    count(*) AS gpu_events,
    sum(e.duration_ns)::BIGINT AS gpu_ns,
    bool_or(t.name IS NOT NULL) AS has_tf32
FROM v1._unclassed_event AS e /* join e */
LEFT JOIN v1._tf32_kernel AS t ON t.name = e.name
WHERE e.op_id IS NOT NULL /* filter e */
GROUP BY /* by e */ e.capture_id, e.device_id, e.op_id
HAVING count(*) > 0;
