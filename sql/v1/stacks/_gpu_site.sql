-- Whose work is each kernel, copy or memset: in which stage, in which nn.Module, below which Python frame?
-- Grain: kernel, copy or memset. Forward, the operator that launched it lies in the frame. Backward, the operator lies in
-- a node of autograd, and the operator that made the node lies in the frame. Forward work that a node runs again
-- (activation checkpointing, see v1._backward_op) lies in frames of its own. Everything that the program calls itself is
-- forward; is_optimizer marks the part of it in PyTorch's Optimizer.step or Optimizer.zero_grad on the launching thread.
CREATE VIEW v1._gpu_site AS
WITH work AS (
    SELECT
        /* by e */
        e.capture_id AS clock_id,
        e.device_id AS gpu_id,
        e.event_id,
        e.kind,
        e.name,
        e.op_id,
        e.duration_ns
    FROM v1._unclassed_event AS e /* join e */
    WHERE e.kind IN ('kernel', 'memcpy', 'memset') /* filter e */
),
op_site AS (
    SELECT
        o.capture_id, o.op_id, o.name AS op_name,
        b.node_id IS NOT NULL AND NOT b.is_again AS is_backward,
        coalesce(b.is_again, false) AS is_again,
        f.module_path AS own_path,
        f.frame_id AS own_frame_id,
        w.module_path AS made_path,
        w.frame_id AS made_frame_id,
        coalesce(z.end_ns >= o.start_ns, false) AS is_optimizer
    FROM main.op AS o
    INNER JOIN (
        SELECT DISTINCT e.capture_id, e.op_id
        FROM main.kernel_event AS e
    ) AS e ON e.capture_id = o.capture_id AND e.op_id = o.op_id
    LEFT JOIN v1._op_frame AS g ON g.capture_id = o.capture_id AND g.op_id = o.op_id
    LEFT JOIN main.frame AS f ON f.capture_id = g.capture_id AND f.frame_id = g.frame_id
    LEFT JOIN v1._backward_op AS b ON b.capture_id = o.capture_id AND b.op_id = o.op_id
    LEFT JOIN main.op AS n ON n.capture_id = b.capture_id AND n.op_id = b.node_id
    LEFT JOIN v1._forward_op AS m ON m.capture_id = n.capture_id AND m.sequence_number = n.sequence_number
    LEFT JOIN v1._op_frame AS h ON h.capture_id = m.capture_id AND h.op_id = m.op_id
    LEFT JOIN main.frame AS w ON w.capture_id = h.capture_id AND w.frame_id = h.frame_id
    ASOF LEFT JOIN v1._optimizer_range AS z
        ON z.capture_id = o.capture_id AND v1._asof_key(z.process_id) = v1._asof_key(o.process_id)
        AND v1._asof_key(z.thread_id) = v1._asof_key(o.thread_id) AND z.start_ns <= o.start_ns
)
SELECT
    /* by work */
    work.clock_id, work.gpu_id, work.event_id, work.kind, work.name, work.op_id, work.duration_ns,
    s.op_name,
    CASE
        WHEN s.is_again THEN 'recomputation'
        WHEN s.is_backward THEN 'backward'
        ELSE 'forward'
    END AS stage,
    coalesce(s.is_optimizer, false) AS is_optimizer,
    CASE WHEN s.is_backward THEN s.made_path ELSE s.own_path END AS module_path,
    CASE WHEN s.is_backward THEN s.made_frame_id ELSE s.own_frame_id END AS frame_id
FROM work
LEFT JOIN op_site AS s ON s.capture_id = work.clock_id AND s.op_id = work.op_id;
