-- How long was the GPU busy with each call of an operator, in which pass, and did other kernels run beside it?
-- Grain: operator instance × device. Work launched by a nested operator belongs to that one (see v1._launched_op).
-- busy_ns is the union of the intervals of its kernels, copies and memsets. Passes: comm if the call launched a
-- collective, step inside PyTorch's optimizer, bwd inside a node of autograd, else fwd; forward work that activation
-- checkpointing runs again in a node is fwd. A call is beside a collective if one overlaps its GPU work, and alone if
-- neither a collective nor a kernel of another stream does. The element type is that of the operand that the operator's
-- formula names, else of the first floating-point tensor, else of the first tensor. signature_no and spelling_no are
-- those of v1._op_spelling.
-- Two intervals have a union of the sum of their lengths or, if that is less, of the time from the first start to the
-- last end. Only calls with more of them are sorted.
CREATE VIEW v1._operator_call AS
WITH moments AS (
    SELECT
        u.capture_id, u.device_id, u.start_ns,
        max(u.reach_ns) OVER until_then AS reach_ns,
        max(u.concurrent_ns) OVER until_then AS concurrent_ns
    FROM (
        SELECT s.capture_id, s.device_id, s.start_ns, s.reach_ns, NULL AS concurrent_ns
        FROM v1._collective_span AS s
        UNION ALL
        SELECT p.capture_id, p.device_id, p.start_ns, NULL AS reach_ns, p.end_ns AS concurrent_ns
        FROM v1._concurrent_span AS p
    ) AS u
    WINDOW until_then AS (PARTITION BY u.capture_id, u.device_id ORDER BY u.start_ns)
),
events AS (
    SELECT
        /* by e */
        e.capture_id AS clock_id, e.device_id AS gpu_id, e.op_id, e.start_ns, e.end_ns, e.duration_ns,
        e.class = 'collective' AS is_collective,
        t.name IS NOT NULL AS has_tf32
    FROM v1._gpu_event AS e /* join e */
    LEFT JOIN v1._tf32_kernel AS t ON t.name = e.name
    WHERE e.op_id IS NOT NULL /* filter e */
),
work AS (
    SELECT
        /* by v */
        v.clock_id, v.gpu_id, v.op_id,
        min(v.start_ns) AS start_ns,
        count(*) AS gpu_events,
        sum(v.duration_ns)::BIGINT AS kernel_sum_ns,
        least(kernel_sum_ns, max(v.end_ns) - min(v.start_ns)) AS busy_ns,
        bool_or(v.is_collective) AS is_collective,
        coalesce(bool_or(m.reach_ns > v.start_ns), false) AS overlaps_collective,
        coalesce(bool_or(m.concurrent_ns > v.start_ns), false) AS is_concurrent,
        bool_or(v.has_tf32) AS has_tf32
    FROM events AS v
    ASOF LEFT JOIN moments AS m
        ON m.capture_id = v.clock_id AND v1._asof_key(m.device_id) = v1._asof_key(v.gpu_id) AND m.start_ns < v.end_ns
    GROUP BY /* by v */ v.clock_id, v.gpu_id, v.op_id
    HAVING count(*) > 0
),
pieces AS (
    SELECT
        /* by e */
        e.capture_id AS clock_id, e.device_id AS gpu_id, e.op_id, e.start_ns, e.end_ns,
        max(e.end_ns) OVER (
            PARTITION BY /* by e */ e.capture_id, e.device_id, e.op_id
            ORDER BY e.start_ns, e.event_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS before_ns
    FROM v1._unclassed_event AS e /* join e */
    SEMI JOIN (
        SELECT w.clock_id, w.gpu_id, w.op_id
        FROM work AS w
        WHERE w.gpu_events > 2
    ) AS w ON w.clock_id = e.capture_id AND w.gpu_id IS NOT DISTINCT FROM e.device_id AND w.op_id = e.op_id
    WHERE e.op_id IS NOT NULL /* filter e */
),
unions AS (
    SELECT
        /* by q */
        q.clock_id, q.gpu_id, q.op_id,
        sum(greatest(q.end_ns - greatest(q.start_ns, coalesce(q.before_ns, q.start_ns)), 0))::BIGINT AS busy_ns
    FROM pieces AS q
    GROUP BY /* by q */ q.clock_id, q.gpu_id, q.op_id
    HAVING count(*) > 0
)
SELECT
    /* by w */
    w.clock_id, w.gpu_id, w.op_id,
    o.signature_no, o.spelling_no,
    s.name, s.input_dims, s.input_types,
    s.element_type,
    CASE WHEN s.element_type = 'fp32' AND w.has_tf32 THEN 'tf32' ELSE s.element_type END AS math_dtype,
    CASE
        WHEN w.is_collective THEN 'comm'
        WHEN z.op_id IS NOT NULL THEN 'step'
        WHEN b.node_id IS NOT NULL AND NOT b.is_again THEN 'bwd'
        ELSE 'fwd'
    END AS pass,
    s.batch, s.m, s.n, s.k, s.flops, s.bytes,
    w.start_ns, w.gpu_events, coalesce(u.busy_ns, w.busy_ns) AS busy_ns, w.kernel_sum_ns,
    w.overlaps_collective AND NOT w.is_collective AS is_beside,
    NOT (w.overlaps_collective OR w.is_concurrent) AS is_alone
FROM work AS w
INNER JOIN v1._op_number AS o ON o.capture_id = w.clock_id AND o.op_id = w.op_id
LEFT JOIN v1._signature_dtype AS s ON s.signature_no = o.signature_no
LEFT JOIN unions AS u
    ON u.clock_id = w.clock_id AND u.gpu_id IS NOT DISTINCT FROM w.gpu_id AND u.op_id = w.op_id /* using u w */
LEFT JOIN v1._backward_op AS b ON b.capture_id = w.clock_id AND b.op_id = w.op_id
LEFT JOIN v1._optimizer_op AS z ON z.capture_id = w.clock_id AND z.op_id = w.op_id;
