-- How long was the GPU busy with each call of an operator, in which pass, and did other kernels run beside it?
-- Grain: operator instance × device. Work launched by a nested operator belongs to that one (see v1._launched_op).
-- busy_ns is the union of the intervals of its kernels, copies and memsets. Passes: comm if the call launched a
-- collective, step inside PyTorch's optimizer, bwd inside a node of autograd, else fwd; forward work that activation
-- checkpointing runs again in a node is fwd. A call is beside a collective if one overlaps its GPU work, and alone if
-- neither a collective nor a kernel of another stream does. The element type is that of the operand that the operator's
-- formula names, else of the first floating-point tensor, else of the first tensor.
CREATE VIEW v1._operator_call AS
WITH events AS (
    SELECT
        /* by e */
        e.capture_id AS clock_id, e.device_id AS gpu_id, e.op_id, e.event_id,
        e.name, e.start_ns, e.end_ns, e.duration_ns,
        e.class = 'collective' AS is_collective
    FROM v1._gpu_event AS e /* join e */
    WHERE e.op_id IS NOT NULL /* filter e */
),
reached AS (
    SELECT
        v.*,
        max(v.end_ns) OVER (
            PARTITION BY /* by v */ v.clock_id, v.gpu_id, v.op_id
            ORDER BY v.start_ns, v.event_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS before_ns,
        coalesce(s.reach_ns > v.start_ns, false) AS is_beside,
        coalesce(p.end_ns > v.start_ns, false) AS is_concurrent
    FROM events AS v
    ASOF LEFT JOIN v1._collective_span AS s
        ON s.capture_id = v.clock_id AND v1._asof_key(s.device_id) = v1._asof_key(v.gpu_id) AND s.start_ns < v.end_ns
    ASOF LEFT JOIN v1._concurrent_span AS p
        ON p.capture_id = v.clock_id AND v1._asof_key(p.device_id) = v1._asof_key(v.gpu_id) AND p.start_ns < v.end_ns
),
work AS (
    SELECT
        /* by q */
        q.clock_id, q.gpu_id, q.op_id,
        min(q.start_ns) AS start_ns,
        count(*) AS gpu_events,
        sum(greatest(q.end_ns - greatest(q.start_ns, coalesce(q.before_ns, q.start_ns)), 0))::BIGINT AS busy_ns,
        sum(q.duration_ns)::BIGINT AS kernel_sum_ns,
        bool_or(q.is_collective) AS is_collective,
        bool_or(q.is_beside) AND NOT bool_or(q.is_collective) AS is_beside,
        NOT bool_or(q.is_beside OR q.is_concurrent) AS is_alone,
        bool_or(t.name IS NOT NULL) AS has_tf32
    FROM reached AS q
    LEFT JOIN v1._tf32_kernel AS t ON t.name = q.name
    GROUP BY /* by q */ q.clock_id, q.gpu_id, q.op_id
)
SELECT
    /* by w */
    w.clock_id, w.gpu_id, w.op_id,
    c.name, c.input_dims, o.input_types, o.input_strides,
    CASE WHEN regexp_matches(c.dtype, '^(fp|bf|u?int)[0-9]') THEN c.dtype ELSE y.dtype END AS element_type,
    CASE WHEN element_type = 'fp32' AND w.has_tf32 THEN 'tf32' ELSE element_type END AS math_dtype,
    CASE
        WHEN w.is_collective THEN 'comm'
        WHEN z.end_ns >= o.start_ns THEN 'step'
        WHEN b.node_id IS NOT NULL AND NOT b.is_again THEN 'bwd'
        ELSE 'fwd'
    END AS pass,
    c.batch, c.m, c.n, c.k, c.flops, c.bytes,
    w.start_ns, w.gpu_events, w.busy_ns, w.kernel_sum_ns, w.is_beside, w.is_alone
FROM work AS w
INNER JOIN v1._op_cost AS c ON c.capture_id = w.clock_id AND c.op_id = w.op_id
INNER JOIN main.op AS o ON o.capture_id = w.clock_id AND o.op_id = w.op_id
LEFT JOIN v1._element_type AS y ON y.input_types = o.input_types
LEFT JOIN v1._backward_op AS b ON b.capture_id = w.clock_id AND b.op_id = w.op_id
ASOF LEFT JOIN v1._optimizer_range AS z
    ON z.capture_id = w.clock_id AND v1._asof_key(z.process_id) = v1._asof_key(o.process_id)
    AND v1._asof_key(z.thread_id) = v1._asof_key(o.thread_id) AND z.start_ns <= o.start_ns;
