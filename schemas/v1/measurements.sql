-- What was measured outside of traces: conditions of devices, sampled operators and times that programs took.

CREATE TABLE main.device_condition (
    capture_id INTEGER NOT NULL,
    device_id INTEGER NOT NULL,
    time_ns BIGINT NOT NULL,
    sm_clock_mhz DOUBLE,
    memory_clock_mhz DOUBLE,
    power_w DOUBLE,
    temperature_c DOUBLE,
    throttle VARCHAR
);
COMMENT ON TABLE main.device_condition IS 'Clocks, power and temperature of a device at a moment: read by tracedb sample and tracedb watch through NVML or amdsmi, or recorded by nsys (GPU metrics).';
COMMENT ON COLUMN main.device_condition.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN main.device_condition.device_id IS 'Device number within the capture. [-]';
COMMENT ON COLUMN main.device_condition.time_ns IS 'When it was read, on the capture''s clock. [ns]';
COMMENT ON COLUMN main.device_condition.sm_clock_mhz IS 'Clock of the multiprocessors or compute units; NULL if not read. [MHz]';
COMMENT ON COLUMN main.device_condition.memory_clock_mhz IS 'Clock of the device memory; NULL if not read. [MHz]';
COMMENT ON COLUMN main.device_condition.power_w IS 'Power drawn by the device: of that moment where the driver tells it, else its average over a short time; NULL if not read. [W]';
COMMENT ON COLUMN main.device_condition.temperature_c IS 'Temperature of the GPU; NULL if not read. [°C]';
COMMENT ON COLUMN main.device_condition.throttle IS 'Why the clock is below its maximum, as the driver names it, several joined by commas, such as sw_power_cap; none if there is no reason; NULL if not read.';

CREATE TABLE main.sample_status (
    capture_id INTEGER,
    operator VARCHAR NOT NULL,
    dtype VARCHAR NOT NULL,
    device VARCHAR NOT NULL,
    shape MAP(VARCHAR, BIGINT) NOT NULL,
    status VARCHAR NOT NULL CHECK (status IN ('sampled', 'invalid', 'out_of_memory', 'error')),
    detail VARCHAR,
    sampled_at TIMESTAMP NOT NULL,
    regime VARCHAR
);
COMMENT ON TABLE main.sample_status IS 'Outcome of one shape in a tracedb sample sweep.';
COMMENT ON COLUMN main.sample_status.capture_id IS 'Capture with its iterations; NULL if it was not sampled. [-]';
COMMENT ON COLUMN main.sample_status.operator IS 'Operator name, such as linear1.';
COMMENT ON COLUMN main.sample_status.dtype IS 'Element type: fp16, bf16 or fp32.';
COMMENT ON COLUMN main.sample_status.device IS 'Product name of the GPU, or cpu.';
COMMENT ON COLUMN main.sample_status.shape IS 'Map from shape parameter to value. [-]';
COMMENT ON COLUMN main.sample_status.status IS 'sampled; invalid (the operator does not allow this shape); out_of_memory; error.';
COMMENT ON COLUMN main.sample_status.detail IS 'Why it was not sampled; NULL if it was.';
COMMENT ON COLUMN main.sample_status.sampled_at IS 'When the shape ran, UTC.';
COMMENT ON COLUMN main.sample_status.regime IS 'steady (at the power and clock of sustained work), rested (the device rests between iterations) or beside_allreduce (steady, while an all-reduce runs); NULL if unknown.';

CREATE TABLE main.operator_sample (
    capture_id INTEGER NOT NULL,
    sample_id BIGINT NOT NULL,
    gpu VARCHAR,
    operator VARCHAR NOT NULL,
    pass VARCHAR NOT NULL,
    dtype VARCHAR,
    shape MAP(VARCHAR, BIGINT) NOT NULL,
    statistic VARCHAR NOT NULL,
    time_ns BIGINT NOT NULL
);
COMMENT ON TABLE main.operator_sample IS 'One operator time measured by another tool, without its events. Samples recorded as ranges are in annotation.';
COMMENT ON COLUMN main.operator_sample.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN main.operator_sample.sample_id IS 'Number of the sample within the capture. [-]';
COMMENT ON COLUMN main.operator_sample.gpu IS 'GPU name as recorded.';
COMMENT ON COLUMN main.operator_sample.operator IS 'Operator name, such as linear1 or allreduce.';
COMMENT ON COLUMN main.operator_sample.pass IS 'fwd, bwd, step (optimizer) or comm (collective).';
COMMENT ON COLUMN main.operator_sample.dtype IS 'Element type: fp16, bf16, fp32, fp64.';
COMMENT ON COLUMN main.operator_sample.shape IS 'Map from shape parameter to value. [-]';
COMMENT ON COLUMN main.operator_sample.statistic IS 'Which statistic time_ns is, such as span_trimmed_mean.';
COMMENT ON COLUMN main.operator_sample.time_ns IS 'The time, rounded to whole nanoseconds. [ns]';

CREATE TABLE main.operator_burst (
    capture_id INTEGER NOT NULL,
    operator VARCHAR NOT NULL,
    pass VARCHAR NOT NULL,
    dtype VARCHAR NOT NULL,
    shape MAP(VARCHAR, BIGINT) NOT NULL,
    calls BIGINT,
    duration_ns BIGINT,
    spin_ns BIGINT,
    sm_clock_mhz DOUBLE,
    memory_clock_mhz DOUBLE,
    power_w DOUBLE,
    spin_power_w DOUBLE,
    power_limit_w DOUBLE,
    sm_clock_limit_mhz DOUBLE,
    host_ns BIGINT,
    is_synchronous BOOLEAN
);
COMMENT ON TABLE main.operator_burst IS 'An operator that tracedb sample repeated alone and without the profiler: its power, or the time in which the host launches it.';
COMMENT ON COLUMN main.operator_burst.capture_id IS 'Capture with the samples of this shape. [-]';
COMMENT ON COLUMN main.operator_burst.operator IS 'Operator name, such as linear1.';
COMMENT ON COLUMN main.operator_burst.pass IS 'fwd, bwd or step (optimizer); of a whole model zero_grad, forward, backward or optimizer.';
COMMENT ON COLUMN main.operator_burst.dtype IS 'Element type: fp16, bf16 or fp32.';
COMMENT ON COLUMN main.operator_burst.shape IS 'Map from shape parameter to value. [-]';
COMMENT ON COLUMN main.operator_burst.calls IS 'Calls while power and clock were read; NULL if only the host was timed. [count]';
COMMENT ON COLUMN main.operator_burst.duration_ns IS 'Time of these calls on the device, with what it spun. [ns]';
COMMENT ON COLUMN main.operator_burst.spin_ns IS 'How long of this one multiprocessor only spun, to draw less power; NULL if it did not. [ns]';
COMMENT ON COLUMN main.operator_burst.sm_clock_mhz IS 'Median SM clock meanwhile; NULL if not read. [MHz]';
COMMENT ON COLUMN main.operator_burst.memory_clock_mhz IS 'Median clock of the device memory meanwhile; NULL if not read. [MHz]';
COMMENT ON COLUMN main.operator_burst.power_w IS 'Mean power of the device meanwhile; NULL if not read. [W]';
COMMENT ON COLUMN main.operator_burst.spin_power_w IS 'Power of the device when it does nothing but spin on one multiprocessor; NULL if not read. [W]';
COMMENT ON COLUMN main.operator_burst.power_limit_w IS 'Power limit enforced on the device; NULL if not read. [W]';
COMMENT ON COLUMN main.operator_burst.sm_clock_limit_mhz IS 'Highest SM clock of the device; NULL if not read. [MHz]';
COMMENT ON COLUMN main.operator_burst.host_ns IS 'Median time in which the host launches one of several calls in a row; of a whole model its time in the pass, Python included, median of a round of steps; NULL if only the power was read. [ns]';
COMMENT ON COLUMN main.operator_burst.is_synchronous IS 'Whether the host waits for the device within a call, so that host_ns includes that; NULL if the host was not timed.';

CREATE TABLE main.measure (
    capture_id INTEGER NOT NULL,
    measure_id BIGINT NOT NULL,
    name VARCHAR NOT NULL,
    statistic VARCHAR NOT NULL CHECK (statistic IN ('single', 'mean', 'median', 'min', 'max', 'stddev')),
    time_ns BIGINT NOT NULL CHECK (time_ns >= 0),
    n BIGINT,
    settings MAP(VARCHAR, VARCHAR) NOT NULL
);
COMMENT ON TABLE main.measure IS 'One time that a program took of itself, outside of any trace. The view range_measured puts it beside the ranges of that name.';
COMMENT ON COLUMN main.measure.capture_id IS 'Capture: the file of times. [-]';
COMMENT ON COLUMN main.measure.measure_id IS 'Number of the time within the capture. [-]';
COMMENT ON COLUMN main.measure.name IS 'What was timed: the name of the range around the same work in a trace.';
COMMENT ON COLUMN main.measure.statistic IS 'single (one repetition), mean, median, min, max or stddev over repetitions.';
COMMENT ON COLUMN main.measure.time_ns IS 'The time, rounded to whole ns. [ns]';
COMMENT ON COLUMN main.measure.n IS 'Repetitions behind it; NULL if not recorded. [count]';
COMMENT ON COLUMN main.measure.settings IS 'Other columns of the file, such as model and context length.';
