-- Which node of autograd does an operator that launched GPU work belong to? Grain: launching operator inside
-- autograd::engine::evaluate_function, the nearest one around it.
CREATE VIEW v1._backward_op AS
WITH RECURSIVE climb AS (
    SELECT o.capture_id, o.op_id, o.op_id AS node_id, o.name, o.parent_op_id
    FROM main.op AS o
    WHERE (o.capture_id, o.op_id) IN (SELECT (e.capture_id, e.op_id) FROM main.kernel_event AS e WHERE e.op_id IS NOT NULL)
    UNION
    SELECT c.capture_id, c.op_id, o.op_id AS node_id, o.name, o.parent_op_id
    FROM climb AS c
    INNER JOIN main.op AS o ON o.capture_id = c.capture_id AND o.op_id = c.parent_op_id
    WHERE NOT starts_with(c.name, 'autograd::engine::evaluate_function')
)
SELECT c.capture_id, c.op_id, c.node_id
FROM climb AS c
WHERE starts_with(c.name, 'autograd::engine::evaluate_function');
