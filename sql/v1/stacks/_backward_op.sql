-- Which node of autograd does an operator belong to, and does it repeat forward work there?
-- Grain: operator inside autograd::engine::evaluate_function, the nearest one around it; that itself, too. Activation
-- checkpointing runs forward operators again inside a node, with gradients enabled: these, or operators around them,
-- record a sequence number of their own, as operators of the backward pass do not. A backward pass that is itself
-- differentiated (create_graph) looks the same.
-- From the nodes down, so that nothing is read where no backward pass was recorded. An operator has one parent, so that
-- a cycle of parents in a damaged file is never reached.
CREATE VIEW v1._backward_op AS
WITH RECURSIVE inside AS (
    SELECT
        o.capture_id, o.op_id, o.op_id AS node_id,
        coalesce(o.sequence_number >= 0 AND coalesce(o.forward_thread_id, 0) = 0, false) AS is_again,
        false AS is_below_again
    FROM main.op AS o
    WHERE starts_with(o.name, 'autograd::engine::evaluate_function')
    UNION ALL
    SELECT
        o.capture_id, o.op_id, i.node_id,
        i.is_below_again OR o.is_forward AS is_again,
        i.is_below_again OR (o.is_forward AND NOT o.is_engine) AS is_below_again
    FROM inside AS i
    INNER JOIN (
        SELECT
            p.capture_id, p.op_id, p.parent_op_id,
            coalesce(p.sequence_number >= 0 AND coalesce(p.forward_thread_id, 0) = 0, false) AS is_forward,
            starts_with(p.name, 'autograd::engine::') AS is_engine
        FROM main.op AS p
        WHERE p.parent_op_id IS NOT NULL AND NOT starts_with(p.name, 'autograd::engine::evaluate_function')
    ) AS o ON o.capture_id = i.capture_id AND o.parent_op_id = i.op_id
)
SELECT i.capture_id, i.op_id, i.node_id, i.is_again
FROM inside AS i;
