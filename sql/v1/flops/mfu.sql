-- What share of its device's peak does a step use for the model's FLOPs?
-- Grain: capture × device × step. MFU is Σ (model FLOPs / peak rate) / step time; HFU is the same with all FLOPs,
-- including those that are recomputed: by backward attention, and by activation checkpointing (v1._backward_op). A
-- backward pass that torch.compile made does not tell its products apart, but gradients need at most twice the FLOPs of
-- the forward pass (v1._compiled_op): what is beyond that is recomputed. FLOPs of each element type count against its own
-- peak. The step time is that of v1.configurations: the range, or the GPU work from first start to last end if that is
-- longer. Both are lower bounds if the FLOPs of some products are unknown (unknown_ns): in graph replays, compiled or
-- custom kernels.
CREATE VIEW v1.mfu AS
WITH spans AS (
    SELECT
        e.capture_id AS clock_id,
        e.device_id AS gpu_id,
        k.step AS step_number,
        e.op_id,
        bool_or(t.name IS NOT NULL) AS has_tf32,
        min(e.start_ns) AS first_ns,
        max(e.end_ns) AS last_ns,
        sum(e.duration_ns) AS gpu_ns,
        sum(e.duration_ns) FILTER (e.class IN ('matmul', 'attention', 'convolution')) AS product_ns
    FROM v1._gpu_event AS e
    INNER JOIN v1._step_kernel AS k ON k.capture_id = e.capture_id AND k.event_id = e.event_id
    LEFT JOIN v1._tf32_kernel AS t ON t.name = e.name
    WHERE k.step IS NOT NULL /* filter e */
    GROUP BY e.capture_id, e.device_id, k.step, e.op_id
),
costs AS (
    SELECT
        s.clock_id, s.gpu_id, s.step_number, s.first_ns, s.last_ns, s.gpu_ns, s.product_ns,
        c.flops,
        CASE WHEN b.is_again AND c.model_flops IS NOT NULL THEN 0 ELSE c.model_flops END AS model_flops,
        f.is_backward AS is_compiled_backward,
        CASE WHEN c.dtype = 'fp32' AND s.has_tf32 THEN 'tf32' ELSE c.dtype END AS math_dtype,
        d.name AS gpu_name
    FROM spans AS s
    LEFT JOIN v1._op_cost AS c ON c.capture_id = s.clock_id AND c.op_id = s.op_id
    LEFT JOIN v1._backward_op AS b ON b.capture_id = s.clock_id AND b.op_id = s.op_id
    LEFT JOIN v1._compiled_op AS f ON f.capture_id = s.clock_id AND f.op_id = s.op_id
    LEFT JOIN main.device AS d ON d.capture_id = s.clock_id AND d.device_id = s.gpu_id
),
-- The share of a compiled backward pass's FLOPs that gradients need; 1 for all others.
needed AS (
    SELECT
        c.clock_id, c.gpu_id, c.step_number, c.first_ns, c.last_ns, c.gpu_ns, c.product_ns, c.flops, c.model_flops, c.math_dtype,
        c.gpu_name,
        CASE
            WHEN c.is_compiled_backward AND max(c.product_ns) FILTER (NOT c.is_compiled_backward AND c.flops IS NULL) OVER step IS NULL
                THEN least(1, coalesce(
                    2.0 * nullif(sum(c.model_flops) FILTER (NOT c.is_compiled_backward) OVER step, 0)
                        / nullif(sum(c.model_flops) FILTER (c.is_compiled_backward) OVER step, 0), 1))
            ELSE 1.0
        END AS share
    FROM costs AS c
    WINDOW step AS (PARTITION BY c.clock_id, c.gpu_id, c.step_number)
),
-- Sums of integers first, because they are exact for every row order; the few quotients are then added in one order.
type_sums AS (
    SELECT
        c.clock_id,
        c.gpu_id,
        c.step_number,
        c.gpu_name,
        c.math_dtype,
        c.share,
        min(c.first_ns) AS first_ns,
        max(c.last_ns) AS last_ns,
        sum(c.flops) AS flops,
        sum(c.model_flops) AS model_flops,
        sum(c.gpu_ns) FILTER (c.flops IS NOT NULL) AS covered_ns,
        sum(c.gpu_ns) FILTER (c.flops IS NULL) AS uncovered_ns,
        sum(c.product_ns) FILTER (c.flops IS NULL) AS unknown_ns
    FROM needed AS c
    GROUP BY c.clock_id, c.gpu_id, c.step_number, c.gpu_name, c.math_dtype, c.share
),
sums AS (
    SELECT
        c.clock_id,
        c.gpu_id,
        c.step_number,
        max(c.last_ns) - min(c.first_ns) AS span_ns,
        sum(c.flops) AS flops,
        sum(c.model_flops * c.share ORDER BY c.math_dtype, c.share) AS model_flops,
        coalesce(sum(c.covered_ns), 0) AS covered_ns,
        coalesce(sum(c.uncovered_ns), 0) AS uncovered_ns,
        coalesce(sum(c.unknown_ns), 0) AS unknown_ns,
        bool_and(p.peak_tflops IS NOT NULL) FILTER (c.flops > 0) AS has_peaks,
        -- FLOP / (TFLOP/s) is ps
        sum(c.flops / p.peak_tflops ORDER BY c.math_dtype, c.share) / 1e3 AS peak_ns,
        sum(c.model_flops * c.share / p.peak_tflops ORDER BY c.math_dtype, c.share) / 1e3 AS model_peak_ns
    FROM type_sums AS c
    LEFT JOIN (
        SELECT k.name, k.dtype, nullif(coalesce(k.sheet_tflops, k.measured_tflops), 0) AS peak_tflops
        FROM v1._device_peak AS k
    ) AS p ON p.name = c.gpu_name AND p.dtype = c.math_dtype
    GROUP BY c.clock_id, c.gpu_id, c.step_number
)
SELECT
    t.clock_id AS capture_id, y.rank, y.labels, t.gpu_id AS device_id,
    t.step_number AS step,
    greatest(t.span_ns, m.range_ns) AS wall_ns,
    t.flops::BIGINT AS flops,
    round(t.model_flops)::BIGINT AS model_flops,
    t.covered_ns::BIGINT AS covered_ns,
    t.uncovered_ns::BIGINT AS uncovered_ns,
    t.unknown_ns::BIGINT AS unknown_ns,
    t.flops / nullif(wall_ns, 0) / 1e3 AS tflops,
    CASE WHEN t.has_peaks THEN t.flops / nullif(t.peak_ns, 0) / 1e3 END AS peak_tflops,
    CASE WHEN t.has_peaks THEN 100 * t.model_peak_ns / nullif(wall_ns, 0) END AS mfu_percent,
    CASE WHEN t.has_peaks THEN 100 * t.peak_ns / nullif(wall_ns, 0) END AS hfu_percent
FROM sums AS t
LEFT JOIN v1._step_mark AS m ON m.capture_id = t.clock_id AND m.step = t.step_number
LEFT JOIN main.capture AS y ON y.capture_id = t.clock_id;

COMMENT ON VIEW v1.mfu IS 'Model and hardware FLOPs utilization of each step (MFU, HFU). Grain: capture × device × step.';
COMMENT ON COLUMN v1.mfu.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN v1.mfu.rank IS 'Rank of the capture; NULL if unknown. [-]';
COMMENT ON COLUMN v1.mfu.labels IS 'Labels of the capture: sweep, threads, channels and others.';
COMMENT ON COLUMN v1.mfu.device_id IS 'Device number within the capture. [-]';
COMMENT ON COLUMN v1.mfu.step IS 'Step number. [-]';
COMMENT ON COLUMN v1.mfu.wall_ns IS 'Step time: the range of the step, or its GPU work from first start to last end if that is longer. [ns]';
COMMENT ON COLUMN v1.mfu.flops IS 'Floating-point operations of the step''s operators, as far as known from shapes. [FLOP]';
COMMENT ON COLUMN v1.mfu.model_flops IS 'FLOPs without those that are recomputed, by backward attention or activation checkpointing. [FLOP]';
COMMENT ON COLUMN v1.mfu.covered_ns IS 'GPU time of operators whose FLOPs are known. [ns]';
COMMENT ON COLUMN v1.mfu.uncovered_ns IS 'All other GPU time, including pointwise operators, collectives and copies. [ns]';
COMMENT ON COLUMN v1.mfu.unknown_ns IS 'Part of uncovered_ns in kernels of class matmul, attention or convolution: these have FLOPs, but they are unknown. [ns]';
COMMENT ON COLUMN v1.mfu.tflops IS 'FLOPs / step time. [TFLOP/s]';
COMMENT ON COLUMN v1.mfu.peak_tflops IS 'Peak rate of the device for this mix of element types (device_peak); NULL if unknown. [TFLOP/s]';
COMMENT ON COLUMN v1.mfu.mfu_percent IS 'Model FLOPs utilization: time of the model''s FLOPs at the peak rate / step time. [percent]';
COMMENT ON COLUMN v1.mfu.hfu_percent IS 'Hardware FLOPs utilization: the same for all FLOPs. [percent]';
