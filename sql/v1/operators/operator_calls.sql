-- How long does an operator take at these shapes on this GPU? Training rows from ordinary traces: the view that
-- `tracedb fit --from traces` reads.
-- Grain: GPU × operator × input shapes × element type × pass; finer where the types of other inputs or the arithmetic
-- (TF32) differ. Calls of all captures are pooled; --by capture, rank or step takes them apart. Calls beside
-- collectives and kernels of other streams are slower for a reason that shapes do not show, so that the medians are also
-- given without them (alone_…).
CREATE VIEW v1.operator_calls AS
WITH calls AS (
    SELECT
        /* by o */
        d.name AS gpu, d.sm_count,
        o.name, o.input_dims, o.input_types, o.element_type AS dtype, o.math_dtype, o.pass,
        o.batch, o.m, o.n, o.k, o.flops, o.bytes,
        o.clock_id, o.gpu_id, o.gpu_events, o.busy_ns, o.kernel_sum_ns, o.is_alone,
        -- Readings older than that are of another moment, as in v1._operator_iteration.
        CASE WHEN o.start_ns - h.time_ns <= 150000000 THEN h.sm_clock_mhz END AS sm_clock_mhz
    FROM v1._operator_call AS o /* inline */
    ASOF LEFT JOIN v1._condition AS h
        ON h.capture_id = o.clock_id AND h.device_id = o.gpu_id AND h.time_ns <= o.start_ns
    LEFT JOIN (
        SELECT v.capture_id, v.device_id, min(v.name) AS name, min(v.sm_count) AS sm_count
        FROM main.device AS v
        GROUP BY v.capture_id, v.device_id
    ) AS d ON d.capture_id = o.clock_id AND d.device_id = o.gpu_id
    WHERE o.input_dims IS NOT NULL
)
SELECT
    /* by c */
    c.gpu,
    c.name,
    c.input_dims,
    c.dtype,
    c.pass,
    c.input_types,
    c.math_dtype,
    count(*) AS n,
    median(c.busy_ns) AS busy_median_ns,
    median(c.kernel_sum_ns) AS kernel_sum_median_ns,
    min(c.busy_ns) AS busy_min_ns,
    max(c.busy_ns) AS busy_max_ns,
    v1._sample_stddev(count(*), sum(c.busy_ns), sum(c.busy_ns::HUGEINT * c.busy_ns)) AS busy_stddev_ns,
    100 * (quantile_cont(c.busy_ns, 0.75) - quantile_cont(c.busy_ns, 0.25)) / nullif(busy_median_ns, 0) AS spread_percent,
    count(*) FILTER (c.is_alone) AS alone_calls,
    median(c.busy_ns) FILTER (c.is_alone) AS alone_median_ns,
    100 * (
        quantile_cont(c.busy_ns, 0.75) FILTER (c.is_alone) - quantile_cont(c.busy_ns, 0.25) FILTER (c.is_alone)
    ) / nullif(alone_median_ns, 0) AS alone_spread_percent,
    CASE WHEN count(c.flops) = count(*) AND min(c.flops) = max(c.flops) THEN min(c.flops) END AS flops,
    CASE WHEN count(c.bytes) = count(*) AND min(c.bytes) = max(c.bytes) THEN min(c.bytes) END AS bytes,
    any_value(c.batch) AS batch,
    any_value(c.m) AS product_m, any_value(c.n) AS product_n, any_value(c.k) AS product_k,
    median(c.gpu_events) AS gpu_events,
    median(c.sm_clock_mhz) AS sm_clock_mhz,
    count(DISTINCT (c.clock_id, c.gpu_id)) AS devices,
    min(c.sm_count) AS sm_count
FROM calls AS c
GROUP BY ALL;

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
