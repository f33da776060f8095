-- Which operator made each node of autograd? Grain: capture × sequence number. All operators that start until the node is
-- made record its number: those around the one that makes it, and before them some that make none. The last one is it.
CREATE VIEW v1._forward_op AS
SELECT o.capture_id, o.sequence_number, arg_max(o.op_id, (o.start_ns, o.op_id)) AS op_id
FROM main.op AS o
WHERE o.sequence_number >= 0 AND coalesce(o.forward_thread_id, 0) = 0
    AND NOT starts_with(o.name, 'autograd::engine::')
GROUP BY o.capture_id, o.sequence_number;
