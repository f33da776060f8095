-- How long does an operator take at these shapes on this GPU? Training rows from ordinary traces: the view that
-- `tracedb fit --from traces` reads.
-- Grain: GPU × operator × input shapes × element type × pass; finer where the types of other inputs or the arithmetic
-- (TF32) differ. Calls of all captures are pooled; --by capture, rank or step takes them apart. Calls beside
-- collectives and kernels of other streams are slower for a reason that shapes do not show, so that the medians are also
-- given without them (alone_…).
CREATE VIEW v1.operator_calls AS
WITH gpus AS (
    SELECT v.capture_id, v.device_id, min(v.name) AS name, min(v.sm_count) AS sm_count
    FROM main.device AS v
    GROUP BY v.capture_id, v.device_id
),
numbers AS (
    SELECT g.capture_id, g.device_id, g.name, g.sm_count, dense_rank() OVER (ORDER BY g.name) AS name_no
    FROM gpus AS g
),
-- A reading holds until the next one, at most 150 ms, as in v1._operator_iteration. For each period of 10 ms in which it
-- holds it has a row, so that a call finds the reading by the period of its start: sorting all calls by time costs more.
readings AS (
    SELECT
        r.capture_id, r.device_id, r.time_ns, r.sm_clock_mhz,
        least(
            lead(r.time_ns) OVER (PARTITION BY r.capture_id, r.device_id ORDER BY r.time_ns, r.sm_clock_mhz),
            r.time_ns + 150000001
        ) AS until_ns
    FROM v1._condition AS r
),
clocks AS (
    SELECT
        r.capture_id, r.device_id, r.time_ns, r.until_ns, r.sm_clock_mhz,
        unnest(range(r.time_ns // 10000000, (r.until_ns - 1) // 10000000 + 1)) AS period
    FROM readings AS r
    WHERE r.until_ns > r.time_ns
),
calls AS (
    SELECT
        /* by o */
        o.clock_id, o.gpu_id, o.signature_no, o.spelling_no, o.math_dtype = 'tf32' AS is_tf32, o.pass,
        o.gpu_events, o.busy_ns, o.kernel_sum_ns, o.is_alone,
        h.sm_clock_mhz
    FROM v1._operator_call AS o /* inline */
    LEFT JOIN clocks AS h
        ON h.capture_id = o.clock_id AND h.device_id = o.gpu_id AND h.period = o.start_ns // 10000000
        AND o.start_ns >= h.time_ns AND o.start_ns < h.until_ns
),
-- By numbers of texts, which are read afterwards.
sums AS (
    SELECT
        /* by c */
        d.name_no, c.spelling_no, c.is_tf32, c.pass,
        any_value(c.signature_no) AS signature_no,
        any_value(d.name) AS gpu,
        count(*) AS calls,
        quantile_cont(c.busy_ns, [0.25, 0.5, 0.75]) AS busy_quartiles,
        quantile_cont(c.busy_ns, [0.25, 0.5, 0.75]) FILTER (c.is_alone) AS alone_quartiles,
        median(c.kernel_sum_ns) AS kernel_sum_median_ns,
        min(c.busy_ns) AS busy_min_ns,
        max(c.busy_ns) AS busy_max_ns,
        v1._sample_stddev(count(*), sum(c.busy_ns), sum(c.busy_ns::HUGEINT * c.busy_ns)) AS busy_stddev_ns,
        count(*) FILTER (c.is_alone) AS alone_calls,
        CASE WHEN count(s.flops) = count(*) AND min(s.flops) = max(s.flops) THEN min(s.flops) END AS flops,
        CASE WHEN count(s.bytes) = count(*) AND min(s.bytes) = max(s.bytes) THEN min(s.bytes) END AS bytes,
        any_value(s.batch) AS batch,
        any_value(s.m) AS m, any_value(s.n) AS n, any_value(s.k) AS k,
        median(c.gpu_events) AS gpu_events,
        median(c.sm_clock_mhz) AS sm_clock_mhz,
        -- Not count(DISTINCT …), for which DuckDB materializes every call. Both numbers fit into one.
        cardinality(histogram(c.clock_id::HUGEINT * 4294967296 + coalesce(c.gpu_id, -1)))::BIGINT AS devices,
        min(d.sm_count) AS sm_count
    FROM calls AS c
    LEFT JOIN numbers AS d ON d.capture_id = c.clock_id AND d.device_id = c.gpu_id
    LEFT JOIN v1._signature_cost AS s ON s.signature_no = c.signature_no
    GROUP BY /* by c */ d.name_no, c.spelling_no, c.is_tf32, c.pass
)
SELECT
    /* by u */
    u.gpu,
    t.name,
    t.input_dims,
    t.element_type AS dtype,
    u.pass,
    t.input_types,
    CASE WHEN u.is_tf32 THEN 'tf32' ELSE t.element_type END AS math_dtype,
    u.calls AS n,
    u.busy_quartiles[2] AS busy_median_ns,
    u.kernel_sum_median_ns,
    u.busy_min_ns,
    u.busy_max_ns,
    u.busy_stddev_ns,
    100 * (u.busy_quartiles[3] - u.busy_quartiles[1]) / nullif(u.busy_quartiles[2], 0) AS spread_percent,
    u.alone_calls,
    u.alone_quartiles[2] AS alone_median_ns,
    100 * (u.alone_quartiles[3] - u.alone_quartiles[1]) / nullif(u.alone_quartiles[2], 0) AS alone_spread_percent,
    u.flops,
    u.bytes,
    u.batch,
    u.m AS product_m, u.n AS product_n, u.k AS product_k,
    u.gpu_events,
    u.sm_clock_mhz,
    u.devices,
    u.sm_count
FROM sums AS u
INNER JOIN v1._signature_dtype AS t ON t.signature_no = u.signature_no
WHERE t.input_dims IS NOT NULL;

COMMENT ON VIEW v1.operator_calls IS 'Times of operators by shape from ordinary traces, the training data of tracedb fit --from traces. Grain: GPU × operator × input shapes × element type × pass.';
COMMENT ON COLUMN v1.operator_calls.gpu IS 'GPU name as recorded; NULL if not recorded.';
COMMENT ON COLUMN v1.operator_calls.name IS 'Operator as recorded, such as aten::mm.';
COMMENT ON COLUMN v1.operator_calls.input_dims IS 'Input shapes, as JSON text as recorded.';
COMMENT ON COLUMN v1.operator_calls.dtype IS 'Element type: fp64, fp32, fp16, bf16, fp8, int64, …; NULL if the types of inputs were not recorded.';
COMMENT ON COLUMN v1.operator_calls.pass IS 'fwd (also forward work that activation checkpointing runs again), bwd (inside autograd), step (inside PyTorch''s optimizer) or comm (collective; its time includes waiting for other ranks).';
COMMENT ON COLUMN v1.operator_calls.input_types IS 'Types of all inputs, as JSON text as recorded; NULL if not recorded.';
COMMENT ON COLUMN v1.operator_calls.math_dtype IS 'Element type of the arithmetic: tf32 if the kernels compute fp32 products in TF32, else dtype.';
COMMENT ON COLUMN v1.operator_calls.n IS 'Calls that launched GPU work. [count]';
COMMENT ON COLUMN v1.operator_calls.busy_median_ns IS 'Median over calls of the busy time: the union of the intervals of the kernels, copies and memsets that a call launched. [ns]';
COMMENT ON COLUMN v1.operator_calls.kernel_sum_median_ns IS 'Median over calls of the sum of their durations. [ns]';
COMMENT ON COLUMN v1.operator_calls.busy_min_ns IS 'Shortest busy time. [ns]';
COMMENT ON COLUMN v1.operator_calls.busy_max_ns IS 'Longest busy time. [ns]';
COMMENT ON COLUMN v1.operator_calls.busy_stddev_ns IS 'Sample standard deviation of the busy time over calls, 0 for one. [ns]';
COMMENT ON COLUMN v1.operator_calls.spread_percent IS 'Distance between the quartiles of the busy time over its median. [percent]';
COMMENT ON COLUMN v1.operator_calls.alone_calls IS 'Calls beside which neither a collective nor a kernel of another stream ran on the device. [count]';
COMMENT ON COLUMN v1.operator_calls.alone_median_ns IS 'Median busy time of these, the target of tracedb fit --from traces; NULL if there are none. [ns]';
COMMENT ON COLUMN v1.operator_calls.alone_spread_percent IS 'Distance between their quartiles over their median. [percent]';
COMMENT ON COLUMN v1.operator_calls.flops IS 'Floating-point operations of one call, as in op_flops; NULL if unknown or if calls of these shapes differ. [FLOP]';
COMMENT ON COLUMN v1.operator_calls.bytes IS 'Total size of inputs and outputs of one call, each counted once; NULL if unknown or if calls differ. [bytes]';
COMMENT ON COLUMN v1.operator_calls.batch IS 'Number of products in one call, as in op_flops. [count]';
COMMENT ON COLUMN v1.operator_calls.product_m IS 'Rows of the result of a product, as m in op_flops. [-]';
COMMENT ON COLUMN v1.operator_calls.product_n IS 'Columns of the result, as n in op_flops. [-]';
COMMENT ON COLUMN v1.operator_calls.product_k IS 'Inner dimension, as k in op_flops. [-]';
COMMENT ON COLUMN v1.operator_calls.gpu_events IS 'Median number of kernels, copies and memsets of a call. [count]';
COMMENT ON COLUMN v1.operator_calls.sm_clock_mhz IS 'Median SM clock, from the last reading in the 150 ms before each call; NULL if there is none (device_condition). [MHz]';
COMMENT ON COLUMN v1.operator_calls.devices IS 'Devices that the calls ran on, over all captures. [count]';
COMMENT ON COLUMN v1.operator_calls.sm_count IS 'Streaming multiprocessors or compute units of the GPU; NULL if not recorded. [count]';
