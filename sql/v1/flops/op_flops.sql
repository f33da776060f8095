-- How many FLOPs and bytes has each operator that launched GPU work, and how long did it take?
-- Grain: operator instance × device. FLOPs follow from shapes (v1._op_work): 2·batch·m·n·k for a product, without the
-- summand of addmm; 2·output·(input channels / groups)·kernel for a convolution; 4·batch·heads·queries·keys·size for
-- fused attention, half if causal; backward passes by their own operators. NULL if the operator has no formula or
-- shapes were not recorded.
CREATE VIEW v1.op_flops AS
SELECT
    /* by a */
    a.clock_id AS capture_id, p.rank, p.labels, a.gpu_id AS device_id,
    a.op_id,
    c.name,
    c.input_dims,
    c.batch, c.m, c.n, c.k,
    c.dtype,
    CASE WHEN c.dtype = 'fp32' AND a.has_tf32 THEN 'tf32' ELSE c.dtype END AS math_dtype,
    c.flops,
    c.model_flops,
    c.bytes,
    a.gpu_events,
    a.gpu_ns,
    c.flops / nullif(a.gpu_ns, 0) / 1e3 AS tflops
FROM v1._launched_op AS a /* inline */
INNER JOIN v1._op_cost AS c ON c.capture_id = a.clock_id AND c.op_id = a.op_id
LEFT JOIN main.capture AS p ON p.capture_id = a.clock_id;

COMMENT ON VIEW v1.op_flops IS 'FLOPs and bytes of each operator that launched GPU work, from its shapes. Grain: operator instance × device.';
COMMENT ON COLUMN v1.op_flops.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN v1.op_flops.rank IS 'Rank of the capture; NULL if unknown. [-]';
COMMENT ON COLUMN v1.op_flops.labels IS 'Labels of the capture: sweep, threads, channels and others.';
COMMENT ON COLUMN v1.op_flops.device_id IS 'Device number within the capture. [-]';
COMMENT ON COLUMN v1.op_flops.op_id IS 'Number of the operator within the capture (op.op_id). [-]';
COMMENT ON COLUMN v1.op_flops.name IS 'Operator as recorded, such as aten::mm.';
COMMENT ON COLUMN v1.op_flops.input_dims IS 'Input shapes, as JSON text as recorded; NULL if not recorded.';
COMMENT ON COLUMN v1.op_flops.batch IS 'Number of products in one call; for attention, batch × heads. NULL for operators that are not products. [count]';
COMMENT ON COLUMN v1.op_flops.m IS 'Rows of the result; for a convolution, output positions; for attention, queries. [-]';
COMMENT ON COLUMN v1.op_flops.n IS 'Columns of the result; for a convolution, output channels; for attention, keys. [-]';
COMMENT ON COLUMN v1.op_flops.k IS 'Inner dimension of the product; for a convolution, elements of a filter; for attention, head size. [-]';
COMMENT ON COLUMN v1.op_flops.dtype IS 'Element type of the first tensor: fp64, fp32, fp16, bf16, fp8, int8, …';
COMMENT ON COLUMN v1.op_flops.math_dtype IS 'Element type of the arithmetic: tf32 if the kernels compute fp32 products in TF32, else dtype.';
COMMENT ON COLUMN v1.op_flops.flops IS 'Floating-point operations, from the shapes; NULL if unknown. [FLOP]';
COMMENT ON COLUMN v1.op_flops.model_flops IS 'FLOPs without those that backward attention recomputes. [FLOP]';
COMMENT ON COLUMN v1.op_flops.bytes IS 'Total size of inputs and outputs, each counted once; NULL if unknown. [bytes]';
COMMENT ON COLUMN v1.op_flops.gpu_events IS 'Number of kernels, copies and memsets that the operator launched. [count]';
COMMENT ON COLUMN v1.op_flops.gpu_ns IS 'Sum of their durations. [ns]';
COMMENT ON COLUMN v1.op_flops.tflops IS 'FLOPs / GPU time. [TFLOP/s]';
