-- How long do the operators of a capture take when they are run again alone, and what could not be run again?
-- Grain: unique operator of the latest replay of a capture. The rows are those of the table main.replay, which has all
-- replays; this view adds how they were timed.
CREATE VIEW v1.replay AS
SELECT
    s.replay_id, s.capture_id, s.signature_id,
    u.device, u.torch_version, u.cache, u.clock,
    s.name, s.input_dims, s.input_types, s.input_strides, s.concrete_inputs, s.copy_kind, s.bytes,
    s.class, s.tier,
    s.calls, s.calls_per_pass, s.recorded_total_ns, s.share_percent,
    s.recorded_median_ns, s.recorded_mad_ns,
    s.replayed_median_ns, s.replayed_mad_ns, s.replayed_kernel_median_ns,
    s.samples, s.timing, s.ratio, s.same_kernels,
    s.kernels, s.replayed_kernels,
    s.joules, s.joules_seconds,
    s.status, s.detail
FROM main.replay AS s
INNER JOIN v1._replay_latest AS l ON l.replay_id = s.replay_id
INNER JOIN main.replay_run AS u ON u.replay_id = s.replay_id
WHERE s.status <> 'left_out';

COMMENT ON VIEW v1.replay IS 'Unique operators of a capture, recorded and run again alone. Grain: operator, shapes, strides, element types and values, of the latest replay of a capture.';
COMMENT ON COLUMN v1.replay.replay_id IS 'Run of tracedb replay. [-]';
COMMENT ON COLUMN v1.replay.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN v1.replay.signature_id IS 'Number of the operator in the run, from 1 by recorded time. [-]';
COMMENT ON COLUMN v1.replay.device IS 'Product name of the device that replayed, or cpu.';
COMMENT ON COLUMN v1.replay.torch_version IS 'Version of PyTorch that replayed.';
COMMENT ON COLUMN v1.replay.cache IS 'warm (inputs may lie in the cache from the call before) or cold (the cache is filled with other data before each call).';
COMMENT ON COLUMN v1.replay.clock IS 'sustained (operators take turns without a pause, as in a step) or rested (a pause before each sample).';
COMMENT ON COLUMN v1.replay.name IS 'Operator: the outermost aten operator that launches anything itself, with all that its inner operators launch. Where no operator is recorded, the kernel or copy.';
COMMENT ON COLUMN v1.replay.input_dims IS 'Shapes of its inputs, JSON text as recorded.';
COMMENT ON COLUMN v1.replay.input_types IS 'Element types of its inputs, JSON text as recorded.';
COMMENT ON COLUMN v1.replay.input_strides IS 'Strides of its inputs, JSON text as recorded.';
COMMENT ON COLUMN v1.replay.concrete_inputs IS 'Values of its scalar inputs, JSON text as recorded.';
COMMENT ON COLUMN v1.replay.copy_kind IS 'Direction of its copies (HtoD, DtoH, DtoD …); NULL if it copies nothing.';
COMMENT ON COLUMN v1.replay.bytes IS 'Bytes copied or set by one call where no operator is recorded. [bytes]';
COMMENT ON COLUMN v1.replay.class IS 'Class of its longest kernel.';
COMMENT ON COLUMN v1.replay.tier IS '1 memory operation (class copy), 2 matmul, 3 the rest. [-]';
COMMENT ON COLUMN v1.replay.calls IS 'Number of calls in the chosen passes. [count]';
COMMENT ON COLUMN v1.replay.calls_per_pass IS 'Calls per pass. [count]';
COMMENT ON COLUMN v1.replay.recorded_total_ns IS 'Sum of the durations of its kernels and copies; without GPU activity, of the operator. [ns]';
COMMENT ON COLUMN v1.replay.share_percent IS 'Its share of the recorded time of the chosen passes. [percent]';
COMMENT ON COLUMN v1.replay.recorded_median_ns IS 'Median over calls of the recorded time of a call. [ns]';
COMMENT ON COLUMN v1.replay.recorded_mad_ns IS 'Median absolute deviation of it. [ns]';
COMMENT ON COLUMN v1.replay.replayed_median_ns IS 'Median over samples of the time of a call; NULL if it was not replayed. [ns]';
COMMENT ON COLUMN v1.replay.replayed_mad_ns IS 'Median absolute deviation of it. [ns]';
COMMENT ON COLUMN v1.replay.replayed_kernel_median_ns IS 'Median over calls of the sum of kernel durations, as the profiler measures them in a recording; NULL without GPU activity. [ns]';
COMMENT ON COLUMN v1.replay.samples IS 'Samples taken, each of many calls where these are short. [count]';
COMMENT ON COLUMN v1.replay.timing IS 'graph (calls in a CUDA graph, between CUDA events), events (CUDA events around each call), profiler (sum of kernel durations: the call waits for the GPU and cannot be captured), wall (clock of the CPU).';
COMMENT ON COLUMN v1.replay.ratio IS 'Replayed over recorded median. [ratio]';
COMMENT ON COLUMN v1.replay.same_kernels IS 'Whether a call launched the kernels that were recorded, by name, grid and block; NULL without GPU activity.';
COMMENT ON COLUMN v1.replay.kernels IS 'What one recorded call launched most often: JSON list of [name, grid, block].';
COMMENT ON COLUMN v1.replay.replayed_kernels IS 'What one replayed call launched: JSON list of [name, grid, block].';
COMMENT ON COLUMN v1.replay.joules IS 'Energy of a call, from the total of NVML over a loop of calls; NULL if not measured. [J]';
COMMENT ON COLUMN v1.replay.joules_seconds IS 'Length of that loop. [s]';
COMMENT ON COLUMN v1.replay.status IS 'replayed, or why not: collective, custom (no such operator in PyTorch), graph_only (known from a graph replay only), no_operator, no_shapes, incomplete (an input is not recorded), too_large, out_of_memory, failed.';
COMMENT ON COLUMN v1.replay.detail IS 'Why it was not replayed, or what had to be assumed; else NULL.';
