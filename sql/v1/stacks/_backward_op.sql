-- Which node of autograd does an operator that launched GPU work belong to, and does it repeat forward work there?
-- Grain: launching operator inside autograd::engine::evaluate_function, the nearest one around it. Activation
-- checkpointing runs forward operators again inside a node, with gradients enabled: these, or operators around them,
-- record a sequence number of their own, as operators of the backward pass do not. A backward pass that is itself
-- differentiated (create_graph) looks the same.
CREATE VIEW v1._backward_op AS
WITH RECURSIVE climb AS (
    SELECT
        o.capture_id, o.op_id, o.op_id AS node_id, o.name, o.parent_op_id,
        coalesce(o.sequence_number >= 0 AND coalesce(o.forward_thread_id, 0) = 0, false) AS is_again
    FROM main.op AS o
    WHERE (o.capture_id, o.op_id) IN (SELECT (e.capture_id, e.op_id) FROM main.kernel_event AS e WHERE e.op_id IS NOT NULL)
    UNION
    SELECT
        c.capture_id, c.op_id, o.op_id AS node_id, o.name, o.parent_op_id,
        c.is_again OR coalesce(
            o.sequence_number >= 0 AND coalesce(o.forward_thread_id, 0) = 0
            AND NOT starts_with(o.name, 'autograd::engine::'), false) AS is_again
    FROM climb AS c
    INNER JOIN main.op AS o ON o.capture_id = c.capture_id AND o.op_id = c.parent_op_id
    WHERE NOT starts_with(c.name, 'autograd::engine::evaluate_function')
)
SELECT c.capture_id, c.op_id, c.node_id, c.is_again
FROM climb AS c
WHERE starts_with(c.name, 'autograd::engine::evaluate_function');
