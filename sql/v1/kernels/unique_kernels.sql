-- Which distinct kernels and memory operations does a run consist of, how often do they run per step, and how long do
-- they take?
-- Grain: signature, that is, everything that identifies the same piece of work; device and stream do not. The sums are
-- those of v1._unique_kernel; shares are relative to all signatures in the answer.
CREATE VIEW v1.unique_kernels AS
SELECT
    /* by u */
    u.name, u.class, u.tier,
    u.grid_x, u.grid_y, u.grid_z, u.block_x, u.block_y, u.block_z,
    u.static_shared_bytes, u.dynamic_shared_bytes, u.shared_bytes,
    u.dtype, u.bytes, u.op_name, u.input_dims,
    u.size.batch AS batch, u.size.m AS m, u.size.n AS n, u.size.k AS k,
    u.calls,
    100.0 * u.calls / nullif(sum(u.calls) OVER (/* partition */), 0) AS calls_percent,
    u.calls_per_step, u.steps, u.steps_from,
    u.total_ns::BIGINT AS total_ns,
    100.0 * u.total_ns / nullif(sum(u.total_ns) OVER (/* partition */), 0) AS share_percent,
    u.total_ns / u.calls AS mean_ns,
    u.quantiles[3] AS median_ns,
    v1._sample_stddev(u.calls, u.total_ns, u.squares) AS stddev_ns,
    u.min_ns,
    u.quantiles[1] AS p05_ns,
    u.quantiles[2] AS p25_ns,
    u.quantiles[4] AS p75_ns,
    u.quantiles[5] AS p95_ns,
    u.max_ns,
    u.gpu_id AS device_id,
    u.first_capture_id,
    u.first_event_id,
    v1._kernel_signature(
        u.name, u.grid_x, u.grid_y, u.grid_z, u.block_x, u.block_y, u.block_z,
        u.static_shared_bytes, u.dynamic_shared_bytes, u.shared_bytes, u.dtype, u.bytes, u.op_name, u.input_dims
    ) AS signature,
    left(md5(signature), 12) AS signature_key,
    v1._short_name(u.name) AS short_name
FROM v1._unique_kernel AS u /* inline */;

COMMENT ON VIEW v1.unique_kernels IS 'Distinct kernels and memory operations of a run, with calls per step and time. Grain: signature (name, class, launch size, shared memory, element type, bytes, operator and its input shapes).';
COMMENT ON COLUMN v1.unique_kernels.name IS 'Name as recorded.';
COMMENT ON COLUMN v1.unique_kernels.class IS 'Class of the kernel; copy for copies and memsets.';
COMMENT ON COLUMN v1.unique_kernels.tier IS '1: memory operation (memcpy, memset); 2: matrix product (GEMM, GEMV, split-K reduction); 3: everything else. [-]';
COMMENT ON COLUMN v1.unique_kernels.grid_x IS 'Grid size, x. [blocks]';
COMMENT ON COLUMN v1.unique_kernels.grid_y IS 'Grid size, y. [blocks]';
COMMENT ON COLUMN v1.unique_kernels.grid_z IS 'Grid size, z. [blocks]';
COMMENT ON COLUMN v1.unique_kernels.block_x IS 'Block size, x. [threads]';
COMMENT ON COLUMN v1.unique_kernels.block_y IS 'Block size, y. [threads]';
COMMENT ON COLUMN v1.unique_kernels.block_z IS 'Block size, z. [threads]';
COMMENT ON COLUMN v1.unique_kernels.static_shared_bytes IS 'Static shared memory per block. [bytes]';
COMMENT ON COLUMN v1.unique_kernels.dynamic_shared_bytes IS 'Dynamic shared memory per block. [bytes]';
COMMENT ON COLUMN v1.unique_kernels.shared_bytes IS 'Shared memory per block, static and dynamic together. [bytes]';
COMMENT ON COLUMN v1.unique_kernels.dtype IS 'Element type of the collective as recorded.';
COMMENT ON COLUMN v1.unique_kernels.bytes IS 'Bytes copied or set by one call. [bytes]';
COMMENT ON COLUMN v1.unique_kernels.op_name IS 'Innermost framework operator that launched the kernel; NULL if none or not recorded.';
COMMENT ON COLUMN v1.unique_kernels.input_dims IS 'Input shapes of that operator, as JSON text as recorded; NULL if not recorded.';
COMMENT ON COLUMN v1.unique_kernels.batch IS 'Number of matrix products in one call of the operator; NULL if it is not a matrix product or its shapes were not recorded. [count]';
COMMENT ON COLUMN v1.unique_kernels.m IS 'M: rows of the operator''s product. [-]';
COMMENT ON COLUMN v1.unique_kernels.n IS 'N: columns of the operator''s product. [-]';
COMMENT ON COLUMN v1.unique_kernels.k IS 'K: inner dimension of the operator''s product. [-]';
COMMENT ON COLUMN v1.unique_kernels.calls IS 'Number of calls. [count]';
COMMENT ON COLUMN v1.unique_kernels.calls_percent IS 'Share of all calls in the answer (with --by: in the group). [percent]';
COMMENT ON COLUMN v1.unique_kernels.calls_per_step IS 'Calls inside steps, per capture and step (steps with GPU events only), or per detected pass; NULL without either. [count]';
COMMENT ON COLUMN v1.unique_kernels.steps IS 'Number of steps or passes that calls_per_step divides by, over all captures; 0 without any. [count]';
COMMENT ON COLUMN v1.unique_kernels.steps_from IS 'Origin of the steps: ProfilerStep; range (--step-range); detected (no steps are marked, but the sequence of kernels repeats); NULL if none.';
COMMENT ON COLUMN v1.unique_kernels.total_ns IS 'Sum of durations. [ns]';
COMMENT ON COLUMN v1.unique_kernels.share_percent IS 'Share of the total time in the answer (with --by: in the group). [percent]';
COMMENT ON COLUMN v1.unique_kernels.mean_ns IS 'Mean duration. [ns]';
COMMENT ON COLUMN v1.unique_kernels.median_ns IS 'Median duration, mean of the middle two. [ns]';
COMMENT ON COLUMN v1.unique_kernels.stddev_ns IS 'Sample standard deviation of durations, 0 for one call. [ns]';
COMMENT ON COLUMN v1.unique_kernels.min_ns IS 'Shortest duration. [ns]';
COMMENT ON COLUMN v1.unique_kernels.p05_ns IS '5th percentile of durations. [ns]';
COMMENT ON COLUMN v1.unique_kernels.p25_ns IS '25th percentile of durations. [ns]';
COMMENT ON COLUMN v1.unique_kernels.p75_ns IS '75th percentile of durations. [ns]';
COMMENT ON COLUMN v1.unique_kernels.p95_ns IS '95th percentile of durations. [ns]';
COMMENT ON COLUMN v1.unique_kernels.max_ns IS 'Longest duration. [ns]';
COMMENT ON COLUMN v1.unique_kernels.device_id IS 'Device number, if all calls ran on the same device; else NULL. [-]';
COMMENT ON COLUMN v1.unique_kernels.first_capture_id IS 'Capture of the first call. [-]';
COMMENT ON COLUMN v1.unique_kernels.first_event_id IS 'First call (kernel_event.event_id). [-]';
COMMENT ON COLUMN v1.unique_kernels.signature IS 'The signature as canonical JSON text.';
COMMENT ON COLUMN v1.unique_kernels.signature_key IS 'First 12 hexadecimal digits of the MD5 of the signature; unique_kernel_calls lists the calls by this key.';
COMMENT ON COLUMN v1.unique_kernels.short_name IS 'Kernel name without return type, namespaces, template arguments and parameters, like nsys''s shortName.';
