-- The distinct kernels and memory operations of a run, with sums over their calls.
-- Grain: signature, that is, everything that identifies the same piece of work; device and stream do not. Steps are the
-- marked or selected ones (v1._step), counted from the events again, because DuckDB would materialize every row of a
-- result that is used twice; a capture without any uses the passes found by v1._detected_pass.
CREATE VIEW v1._unique_kernel AS
WITH marked AS (
    SELECT /* by e */ count(DISTINCT (e.capture_id, s.step)) AS steps
    FROM v1._unclassed_event AS e /* join e */
    INNER JOIN v1._step_kernel AS s ON s.capture_id = e.capture_id AND s.event_id = e.event_id
    WHERE e.kind IN ('kernel', 'memcpy', 'memset') AND s.step IS NOT NULL /* filter e */
    GROUP BY ALL
),
shaped AS (
    SELECT
        /* by s */
        s.name,
        s.kind, s.class,
        v1._kernel_tier(s.kind, s.name, s.class) AS tier,
        s.grid_x, s.grid_y, s.grid_z, s.block_x, s.block_y, s.block_z,
        s.static_shared_bytes, s.dynamic_shared_bytes, s.shared_bytes,
        s.dtype, s.bytes, s.op_name, s.input_dims,
        CASE WHEN tier = 2 THEN v1._operator_matmul(s.op_name, s.input_dims) END AS size,
        s.calls, s.calls_in_steps, s.total_ns, s.squares, s.min_ns, s.max_ns, s.quantiles,
        CASE WHEN s.lowest_gpu = s.highest_gpu THEN s.lowest_gpu END AS gpu_id,
        (s.first_call // 4611686018427387904::HUGEINT)::BIGINT AS first_capture_id,
        (s.first_call % 4611686018427387904::HUGEINT)::BIGINT AS first_event_id,
        (SELECT m.steps FROM marked AS m WHERE true /* using s m */) AS marked_steps,
        s.detected_steps
    FROM v1._signature_sum AS s /* inline */
)
SELECT
    /* by */
    h.name, h.kind, h.class, h.tier,
    h.grid_x, h.grid_y, h.grid_z, h.block_x, h.block_y, h.block_z,
    h.static_shared_bytes, h.dynamic_shared_bytes, h.shared_bytes,
    h.dtype, h.bytes, h.op_name, h.input_dims,
    h.size,
    h.calls,
    h.calls_in_steps / nullif(coalesce(h.marked_steps, 0) + coalesce(h.detected_steps, 0), 0) AS calls_per_step,
    (coalesce(h.marked_steps, 0) + coalesce(h.detected_steps, 0))::BIGINT AS steps,
    CASE
        WHEN h.marked_steps > 0 AND h.detected_steps > 0 THEN 'ProfilerStep, detected'
        WHEN h.marked_steps > 0 AND getvariable('step_range') IS NOT NULL THEN 'range'
        WHEN h.marked_steps > 0 THEN 'ProfilerStep'
        WHEN h.detected_steps > 0 THEN 'detected'
    END AS steps_from,
    h.total_ns, h.squares, h.min_ns, h.max_ns, h.quantiles,
    h.gpu_id, h.first_capture_id, h.first_event_id
FROM shaped AS h;
