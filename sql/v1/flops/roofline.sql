-- How far is each operator from the roofline of its device, and what bounds it?
-- Grain: capture × device × operator × input shapes × element type. The time at the roof is the longer of all FLOPs at
-- the device's peak rate and all bytes at its bandwidth (each tensor once); the longer one bounds the operator. If only
-- bytes are known (pointwise operators), memory does. lost_ns ranks operators by the time that could be saved at most.
-- Peaks are those of the data sheet (main.device_peak), or measured ones if there is no data sheet. A small tensor that
-- stays in the cache can exceed the memory roof.
CREATE VIEW v1.roofline AS
WITH sums AS (
    SELECT
        /* by a */
        /* grain */ a.clock_id, a.gpu_id, /* end grain */
        d.name AS gpu_name,
        c.name,
        c.input_dims,
        c.dtype,
        CASE WHEN c.dtype = 'fp32' AND a.has_tf32 THEN 'tf32' ELSE c.dtype END AS math_dtype,
        any_value(c.batch) AS batch, any_value(c.m) AS m, any_value(c.n) AS n, any_value(c.k) AS k,
        count(*) AS calls,
        CASE WHEN count(c.flops) = count(*) THEN sum(c.flops) END AS flops,
        CASE WHEN count(c.bytes) = count(*) THEN sum(c.bytes) END AS bytes,
        sum(a.gpu_ns) AS gpu_ns
    FROM v1._launched_op AS a /* inline */
    INNER JOIN v1._op_cost AS c ON c.capture_id = a.clock_id AND c.op_id = a.op_id
    LEFT JOIN main.device AS d ON d.capture_id = a.clock_id AND d.device_id = a.gpu_id
    GROUP BY ALL
),
roofs AS (
    SELECT
        /* by s */
        /* grain */ s.clock_id, s.gpu_id, /* end grain */
        s.name, s.input_dims, s.batch, s.m, s.n, s.k, s.dtype, s.math_dtype, s.calls, s.flops, s.bytes, s.gpu_ns,
        coalesce(p.sheet_tflops, p.measured_tflops) AS peak_tflops,
        coalesce(b.sheet_gbps, b.measured_gbps) AS peak_gbps,
        -- FLOP / (TFLOP/s) is ps; bytes / (GB/s) is ns
        s.flops / nullif(peak_tflops, 0) / 1e3 AS compute_ns,
        s.bytes / nullif(peak_gbps, 0) AS memory_ns,
        CASE
            WHEN s.flops IS NULL THEN memory_ns
            WHEN s.bytes IS NULL THEN compute_ns
            WHEN compute_ns IS NOT NULL AND memory_ns IS NOT NULL THEN greatest(compute_ns, memory_ns)
        END AS roof_ns,
        CASE
            WHEN s.flops IS NULL THEN s.bytes / nullif(b.measured_gbps, 0)
            WHEN p.measured_tflops > 0 AND b.measured_gbps > 0
                THEN greatest(s.flops / p.measured_tflops / 1e3, s.bytes / b.measured_gbps)
        END AS measured_roof_ns
    FROM sums AS s
    LEFT JOIN v1._device_peak AS p ON p.name = s.gpu_name AND p.dtype = s.math_dtype
    LEFT JOIN (
        SELECT k.name, max(k.sheet_gbps) AS sheet_gbps, max(k.measured_gbps) AS measured_gbps
        FROM v1._device_peak AS k
        GROUP BY k.name
    ) AS b ON b.name = s.gpu_name
)
SELECT
    /* by roofs */
    /* grain */ roofs.clock_id AS capture_id, t.rank, t.labels, roofs.gpu_id AS device_id, /* end grain */
    roofs.name,
    roofs.input_dims,
    roofs.batch, roofs.m, roofs.n, roofs.k,
    roofs.dtype,
    roofs.math_dtype,
    roofs.calls,
    roofs.flops::BIGINT AS flops,
    roofs.bytes::BIGINT AS bytes,
    roofs.gpu_ns::BIGINT AS gpu_ns,
    100.0 * roofs.gpu_ns / nullif(sum(roofs.gpu_ns) OVER (/* partition */), 0) AS share_percent,
    roofs.flops / nullif(roofs.gpu_ns, 0) / 1e3 AS tflops,
    roofs.bytes / nullif(roofs.gpu_ns, 0) AS memory_gbps,
    roofs.flops / nullif(roofs.bytes, 0) AS intensity,
    CASE
        WHEN roofs.flops IS NULL AND roofs.memory_ns IS NOT NULL THEN 'memory'
        WHEN roofs.compute_ns > roofs.memory_ns THEN 'compute'
        WHEN roofs.compute_ns <= roofs.memory_ns THEN 'memory'
    END AS bound,
    100 * roofs.roof_ns / nullif(roofs.gpu_ns, 0) AS peak_percent,
    roofs.peak_tflops,
    roofs.peak_gbps,
    TRY_CAST(round(roofs.roof_ns) AS BIGINT) AS roof_ns,
    CASE WHEN roofs.roof_ns IS NOT NULL THEN round(greatest(roofs.gpu_ns - roofs.roof_ns, 0))::BIGINT END AS lost_ns,
    100 * roofs.measured_roof_ns / nullif(roofs.gpu_ns, 0) AS measured_peak_percent
FROM roofs
/* grain */ LEFT JOIN main.capture AS t ON t.capture_id = roofs.clock_id /* end grain */;

COMMENT ON VIEW v1.roofline IS 'Achieved rate, arithmetic intensity and distance from the roofline of each operator and shape. Grain: capture × device × operator × input shapes × element type.';
COMMENT ON COLUMN v1.roofline.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN v1.roofline.rank IS 'Rank of the capture; NULL if unknown. [-]';
COMMENT ON COLUMN v1.roofline.labels IS 'Labels of the capture: sweep, threads, channels and others.';
COMMENT ON COLUMN v1.roofline.device_id IS 'Device number within the capture. [-]';
COMMENT ON COLUMN v1.roofline.name IS 'Operator as recorded, such as aten::mm.';
COMMENT ON COLUMN v1.roofline.input_dims IS 'Input shapes, as JSON text as recorded; NULL if not recorded.';
COMMENT ON COLUMN v1.roofline.batch IS 'Number of products in one call, as in op_flops. [count]';
COMMENT ON COLUMN v1.roofline.m IS 'Rows of the result, as in op_flops. [-]';
COMMENT ON COLUMN v1.roofline.n IS 'Columns of the result, as in op_flops. [-]';
COMMENT ON COLUMN v1.roofline.k IS 'Inner dimension, as in op_flops. [-]';
COMMENT ON COLUMN v1.roofline.dtype IS 'Element type of the first tensor: fp64, fp32, fp16, bf16, fp8, int8, …';
COMMENT ON COLUMN v1.roofline.math_dtype IS 'Element type of the arithmetic: tf32 if the kernels compute fp32 products in TF32, else dtype.';
COMMENT ON COLUMN v1.roofline.calls IS 'Number of calls. [count]';
COMMENT ON COLUMN v1.roofline.flops IS 'Floating-point operations of all calls; NULL if those of any call are unknown. [FLOP]';
COMMENT ON COLUMN v1.roofline.bytes IS 'Total size of inputs and outputs over all calls, each counted once per call; NULL if unknown. [bytes]';
COMMENT ON COLUMN v1.roofline.gpu_ns IS 'Sum of durations of the GPU work that the calls launched. [ns]';
COMMENT ON COLUMN v1.roofline.share_percent IS 'Share of the GPU time of all operators in the answer. [percent]';
COMMENT ON COLUMN v1.roofline.tflops IS 'FLOPs / GPU time. [TFLOP/s]';
COMMENT ON COLUMN v1.roofline.memory_gbps IS 'Bytes / GPU time. [GB/s]';
COMMENT ON COLUMN v1.roofline.intensity IS 'FLOPs per byte. [ratio]';
COMMENT ON COLUMN v1.roofline.bound IS 'compute or memory, whichever takes longer at the device''s peaks; NULL if bytes or peaks are unknown.';
COMMENT ON COLUMN v1.roofline.peak_percent IS 'Time at the roof / measured time. [percent]';
COMMENT ON COLUMN v1.roofline.peak_tflops IS 'Peak rate of the device for this element type (device_peak). [TFLOP/s]';
COMMENT ON COLUMN v1.roofline.peak_gbps IS 'Peak memory bandwidth of the device (device_peak). [GB/s]';
COMMENT ON COLUMN v1.roofline.roof_ns IS 'Time at the roof: the longer of FLOPs / peak rate and bytes / peak bandwidth. [ns]';
COMMENT ON COLUMN v1.roofline.lost_ns IS 'Measured time minus time at the roof. [ns]';
COMMENT ON COLUMN v1.roofline.measured_peak_percent IS 'Time at the roof of measured peaks (tracedb sample --peaks) / measured time; NULL if no peaks were measured. [percent]';
