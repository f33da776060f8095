-- What commands computed from captures: replayed operators, and expected times of operators and steps.

CREATE TABLE main.replay_run (
    replay_id INTEGER NOT NULL,
    capture_id INTEGER NOT NULL,
    mode VARCHAR NOT NULL CHECK (mode IN ('isolated', 'full', 'compare')),
    activity VARCHAR NOT NULL CHECK (activity IN ('gpu', 'cpu')),
    step BIGINT,
    range_glob VARCHAR,
    passes BIGINT NOT NULL,
    device VARCHAR,
    torch_version VARCHAR,
    cache VARCHAR CHECK (cache IN ('warm', 'cold')),
    clock VARCHAR CHECK (clock IN ('sustained', 'rested')),
    sequence_calls BIGINT,
    sequence_share_percent DOUBLE,
    sequence_eager_ns DOUBLE,
    sequence_graph_ns DOUBLE,
    sequence_joules DOUBLE,
    sequence_detail VARCHAR,
    idle_watts DOUBLE,
    energy_interval_ns BIGINT,
    measured_ns DOUBLE,
    measured_joules DOUBLE,
    measured_source VARCHAR,
    replayed_at TIMESTAMP NOT NULL
);
COMMENT ON TABLE main.replay_run IS 'One run of tracedb replay: what was replayed, where and how.';
COMMENT ON COLUMN main.replay_run.replay_id IS 'Number of the run in this file. [-]';
COMMENT ON COLUMN main.replay_run.capture_id IS 'Capture whose operators were replayed. [-]';
COMMENT ON COLUMN main.replay_run.mode IS 'isolated (each unique operator alone), full (the operators of a pass in their recorded order), compare (both).';
COMMENT ON COLUMN main.replay_run.activity IS 'What was recorded of an operator: gpu (its kernels and copies) or cpu (its own time, where the capture has no GPU activity).';
COMMENT ON COLUMN main.replay_run.step IS 'Step chosen with --step; NULL for all. [-]';
COMMENT ON COLUMN main.replay_run.range_glob IS 'Pattern of ranges given with --range; NULL if none.';
COMMENT ON COLUMN main.replay_run.passes IS 'Passes (steps, ranges, or the whole capture) that the calls come from. [count]';
COMMENT ON COLUMN main.replay_run.device IS 'Product name of the device that replayed, or cpu.';
COMMENT ON COLUMN main.replay_run.torch_version IS 'Version of PyTorch that replayed.';
COMMENT ON COLUMN main.replay_run.cache IS 'warm (inputs may lie in the cache from the call before) or cold (the cache is filled with other data before each call).';
COMMENT ON COLUMN main.replay_run.clock IS 'sustained (operators take turns without a pause, as in a step) or rested (a pause before each sample).';
COMMENT ON COLUMN main.replay_run.sequence_calls IS 'Calls of the pass that was replayed as a whole; NULL if none was. [count]';
COMMENT ON COLUMN main.replay_run.sequence_share_percent IS 'Their share of the recorded time of the pass. [percent]';
COMMENT ON COLUMN main.replay_run.sequence_eager_ns IS 'Median wall time of the pass replayed call by call. [ns]';
COMMENT ON COLUMN main.replay_run.sequence_graph_ns IS 'Median time of the pass replayed as one CUDA graph; NULL where it cannot be captured. [ns]';
COMMENT ON COLUMN main.replay_run.sequence_joules IS 'Energy of the pass replayed call by call, idle time included; NULL if not measured. [J]';
COMMENT ON COLUMN main.replay_run.sequence_detail IS 'Why the pass was not replayed as a whole; NULL if it was.';
COMMENT ON COLUMN main.replay_run.idle_watts IS 'Power of the idle device before the replay; NULL if not measured. [W]';
COMMENT ON COLUMN main.replay_run.energy_interval_ns IS 'Longest time between two updates of the energy counter that was seen: no energy is resolved more finely. [ns]';
COMMENT ON COLUMN main.replay_run.measured_ns IS 'Wall time of a pass measured without a profiler (--measured); NULL if not given. [ns]';
COMMENT ON COLUMN main.replay_run.measured_joules IS 'Energy of a pass measured with it; NULL if not given. [J]';
COMMENT ON COLUMN main.replay_run.measured_source IS 'File or value given with --measured.';
COMMENT ON COLUMN main.replay_run.replayed_at IS 'When it ran, UTC.';

CREATE TABLE main.replay_pass (
    replay_id INTEGER NOT NULL,
    capture_id INTEGER NOT NULL,
    pass INTEGER NOT NULL,
    name VARCHAR NOT NULL,
    step BIGINT,
    events BIGINT NOT NULL,
    kernel_sum_ns BIGINT NOT NULL,
    union_ns BIGINT NOT NULL,
    span_ns BIGINT NOT NULL,
    idle_ns BIGINT NOT NULL,
    launch_gap_ns BIGINT,
    wall_ns BIGINT NOT NULL
);
COMMENT ON TABLE main.replay_pass IS 'A recorded pass (step, range or whole capture) whose operators tracedb replay ran.';
COMMENT ON COLUMN main.replay_pass.replay_id IS 'Run of tracedb replay. [-]';
COMMENT ON COLUMN main.replay_pass.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN main.replay_pass.pass IS 'Number of the pass, from 1 in the order of time. [-]';
COMMENT ON COLUMN main.replay_pass.name IS 'Name of the step or range; capture for the whole capture.';
COMMENT ON COLUMN main.replay_pass.step IS 'Step number; NULL for other passes. [-]';
COMMENT ON COLUMN main.replay_pass.events IS 'GPU events of the pass; of a capture of the CPU only, operators. [count]';
COMMENT ON COLUMN main.replay_pass.kernel_sum_ns IS 'Sum of their durations. [ns]';
COMMENT ON COLUMN main.replay_pass.union_ns IS 'Time during which at least one of them runs. [ns]';
COMMENT ON COLUMN main.replay_pass.span_ns IS 'From the first start to the last end. [ns]';
COMMENT ON COLUMN main.replay_pass.idle_ns IS 'Span less union. [ns]';
COMMENT ON COLUMN main.replay_pass.launch_gap_ns IS 'Part of the idle time during which nothing was launched yet: the GPU waited for the CPU. NULL where launches were not recorded. [ns]';
COMMENT ON COLUMN main.replay_pass.wall_ns IS 'From the start of the range to its end or to the last end on the GPU, if that is later; of a whole capture the span. [ns]';

CREATE TABLE main.replay (
    replay_id INTEGER NOT NULL,
    signature_id INTEGER NOT NULL,
    capture_id INTEGER NOT NULL,
    name VARCHAR NOT NULL,
    input_dims VARCHAR,
    input_types VARCHAR,
    input_strides VARCHAR,
    concrete_inputs VARCHAR,
    copy_kind VARCHAR,
    bytes BIGINT,
    class VARCHAR,
    tier INTEGER,
    kernels VARCHAR,
    calls BIGINT NOT NULL,
    calls_per_pass DOUBLE NOT NULL,
    recorded_total_ns BIGINT NOT NULL,
    share_percent DOUBLE NOT NULL,
    recorded_median_ns DOUBLE NOT NULL,
    recorded_mad_ns DOUBLE NOT NULL,
    replayed_median_ns DOUBLE,
    replayed_mad_ns DOUBLE,
    replayed_kernel_median_ns DOUBLE,
    samples BIGINT,
    timing VARCHAR CHECK (timing IN ('graph', 'events', 'wall', 'profiler')),
    ratio DOUBLE,
    same_kernels BOOLEAN,
    replayed_kernels VARCHAR,
    joules DOUBLE,
    joules_seconds DOUBLE,
    status VARCHAR NOT NULL CHECK (status IN (
        'replayed', 'collective', 'custom', 'graph_only', 'no_operator', 'no_shapes', 'incomplete', 'too_large',
        'out_of_memory', 'failed', 'left_out'
    )),
    detail VARCHAR
);
COMMENT ON TABLE main.replay IS 'A unique operator of a capture, its recorded time, and its time when it was run again alone.';
COMMENT ON COLUMN main.replay.replay_id IS 'Run of tracedb replay. [-]';
COMMENT ON COLUMN main.replay.signature_id IS 'Number of the operator in the run, from 1 by recorded time. [-]';
COMMENT ON COLUMN main.replay.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN main.replay.name IS 'Operator that launched the work: the outermost aten operator that launches anything itself, with all that its inner operators launch. Where no operator is recorded, the kernel or copy.';
COMMENT ON COLUMN main.replay.input_dims IS 'Shapes of its inputs, JSON text as recorded.';
COMMENT ON COLUMN main.replay.input_types IS 'Element types of its inputs, JSON text as recorded.';
COMMENT ON COLUMN main.replay.input_strides IS 'Strides of its inputs, JSON text as recorded.';
COMMENT ON COLUMN main.replay.concrete_inputs IS 'Values of its scalar inputs, JSON text as recorded.';
COMMENT ON COLUMN main.replay.copy_kind IS 'Direction of its copies (HtoD, DtoH, DtoD …); NULL if it copies nothing.';
COMMENT ON COLUMN main.replay.bytes IS 'Bytes copied or set by one call where no operator is recorded. [bytes]';
COMMENT ON COLUMN main.replay.class IS 'Class of its longest kernel.';
COMMENT ON COLUMN main.replay.tier IS '1 memory operation (class copy), 2 matmul, 3 the rest. [-]';
COMMENT ON COLUMN main.replay.kernels IS 'What one call launched most often: JSON list of [name, grid, block].';
COMMENT ON COLUMN main.replay.calls IS 'Number of calls in the chosen passes. [count]';
COMMENT ON COLUMN main.replay.calls_per_pass IS 'Calls per pass. [count]';
COMMENT ON COLUMN main.replay.recorded_total_ns IS 'Sum of the durations of its kernels and copies; without GPU activity, of the operator. [ns]';
COMMENT ON COLUMN main.replay.share_percent IS 'Its share of the recorded time of the chosen passes. [percent]';
COMMENT ON COLUMN main.replay.recorded_median_ns IS 'Median over calls of the recorded time of a call. [ns]';
COMMENT ON COLUMN main.replay.recorded_mad_ns IS 'Median absolute deviation of it. [ns]';
COMMENT ON COLUMN main.replay.replayed_median_ns IS 'Median over samples of the time of a call; NULL if it was not replayed. [ns]';
COMMENT ON COLUMN main.replay.replayed_mad_ns IS 'Median absolute deviation of it. [ns]';
COMMENT ON COLUMN main.replay.replayed_kernel_median_ns IS 'Median over calls of the sum of kernel durations, as the profiler measures them in a recording; NULL without GPU activity. [ns]';
COMMENT ON COLUMN main.replay.samples IS 'Samples taken, each of many calls where these are short. [count]';
COMMENT ON COLUMN main.replay.timing IS 'graph (calls in a CUDA graph, between CUDA events), events (CUDA events around each call), profiler (sum of kernel durations: the call waits for the GPU and cannot be captured), wall (clock of the CPU).';
COMMENT ON COLUMN main.replay.ratio IS 'Replayed over recorded median. [ratio]';
COMMENT ON COLUMN main.replay.same_kernels IS 'Whether a call launched the kernels that were recorded, by name, grid and block; NULL without GPU activity.';
COMMENT ON COLUMN main.replay.replayed_kernels IS 'What one call launched: JSON list of [name, grid, block].';
COMMENT ON COLUMN main.replay.joules IS 'Energy of a call, from the total of NVML over a loop of calls; NULL if not measured. [J]';
COMMENT ON COLUMN main.replay.joules_seconds IS 'Length of that loop. [s]';
COMMENT ON COLUMN main.replay.status IS 'replayed, or why not: collective, custom (no such operator in PyTorch), graph_only (known from a graph replay only), no_operator, no_shapes, incomplete (an input is not recorded), too_large, out_of_memory, failed, left_out (by the options).';
COMMENT ON COLUMN main.replay.detail IS 'Why it was not replayed, or what had to be assumed; else NULL.';

CREATE TABLE main.expected_time (
    capture_id INTEGER NOT NULL,
    gpu VARCHAR,
    name VARCHAR NOT NULL,
    input_dims VARCHAR NOT NULL,
    input_types VARCHAR,
    math_dtype VARCHAR,
    pass VARCHAR NOT NULL,
    predicted_ns DOUBLE NOT NULL CHECK (predicted_ns > 0),
    low_ns DOUBLE NOT NULL,
    high_ns DOUBLE NOT NULL,
    basis VARCHAR NOT NULL CHECK (basis IN ('recorded', 'model', 'others')),
    samples BIGINT,
    models_sha256 VARCHAR,
    predicted_at TIMESTAMP
);
COMMENT ON TABLE main.expected_time IS 'Time of one call of an operator of a capture as predicted by models of its GPU; filled by tracedb expected, read by the view expected.';
COMMENT ON COLUMN main.expected_time.capture_id IS 'Capture that the prediction is for. [-]';
COMMENT ON COLUMN main.expected_time.gpu IS 'Name of its GPU.';
COMMENT ON COLUMN main.expected_time.name IS 'Operator (op.name).';
COMMENT ON COLUMN main.expected_time.input_dims IS 'Input shapes, as in op.';
COMMENT ON COLUMN main.expected_time.input_types IS 'Input element types, as in op; NULL if not recorded.';
COMMENT ON COLUMN main.expected_time.math_dtype IS 'Element type of the arithmetic, as in operator_calls; NULL if unknown.';
COMMENT ON COLUMN main.expected_time.pass IS 'fwd, bwd or step, as in operator_calls.';
COMMENT ON COLUMN main.expected_time.predicted_ns IS 'Predicted time of one call beside which no collective runs. [ns]';
COMMENT ON COLUMN main.expected_time.low_ns IS 'Lower end of the interval that should hold nine of ten measurements. [ns]';
COMMENT ON COLUMN main.expected_time.high_ns IS 'Upper end of that interval. [ns]';
COMMENT ON COLUMN main.expected_time.basis IS 'recorded (time at the same shapes in other traces), model (of the operator, at this shape) or others (the other captures of this file).';
COMMENT ON COLUMN main.expected_time.samples IS 'Calls, or shapes of the model, that it is based on. [count]';
COMMENT ON COLUMN main.expected_time.models_sha256 IS 'SHA-256 of models.json; NULL for basis others.';
COMMENT ON COLUMN main.expected_time.predicted_at IS 'When it was predicted, UTC.';

CREATE TABLE main.whatif (
    capture_id INTEGER NOT NULL,
    span VARCHAR NOT NULL,
    scenario VARCHAR NOT NULL,
    changes INTEGER NOT NULL,
    ranks INTEGER NOT NULL,
    rank INTEGER,
    steps INTEGER NOT NULL,
    measured_ns BIGINT NOT NULL,
    predicted_ns BIGINT NOT NULL,
    gain_percent DOUBLE NOT NULL,
    bound_by VARCHAR NOT NULL,
    limit_ns BIGINT NOT NULL,
    limit_percent DOUBLE NOT NULL,
    predicted_at TIMESTAMP NOT NULL
);
COMMENT ON TABLE main.whatif IS 'Time of the recorded steps under changes, as tracedb whatif --store found it: a row for each recording, span and scenario.';
COMMENT ON COLUMN main.whatif.capture_id IS 'Capture; of several ranks that are timed together the first. [-]';
COMMENT ON COLUMN main.whatif.span IS 'What is timed: steps, step N, window FROM:TO (ns), steps of a chosen range, or the whole capture.';
COMMENT ON COLUMN main.whatif.scenario IS 'The change, as options of tracedb whatif; no change for the recording itself.';
COMMENT ON COLUMN main.whatif.changes IS 'Number of changes that are made together; 0 for the recording itself. [count]';
COMMENT ON COLUMN main.whatif.ranks IS 'Number of captures that are timed together. [count]';
COMMENT ON COLUMN main.whatif.rank IS 'Rank that ends last under the scenario; NULL if unknown. [-]';
COMMENT ON COLUMN main.whatif.steps IS 'Number of steps in the span; 0 if none is marked. [count]';
COMMENT ON COLUMN main.whatif.measured_ns IS 'Time as recorded, from the start of the first step to the end of the last. [ns]';
COMMENT ON COLUMN main.whatif.predicted_ns IS 'The same time under the scenario. [ns]';
COMMENT ON COLUMN main.whatif.gain_percent IS 'By how much less that is. [percent]';
COMMENT ON COLUMN main.whatif.bound_by IS 'What takes most of the critical path under the scenario (critical_path.bound_by).';
COMMENT ON COLUMN main.whatif.limit_ns IS 'The time if the change were taken as far as it goes: the work takes no time. [ns]';
COMMENT ON COLUMN main.whatif.limit_percent IS 'By how much less that is: the largest possible gain. [percent]';
COMMENT ON COLUMN main.whatif.predicted_at IS 'When it was predicted, UTC.';
