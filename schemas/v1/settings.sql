-- Settings that a user may edit: rules, limits and peak rates of devices.

CREATE TABLE main.kernel_rule (
    priority INTEGER NOT NULL,
    pattern VARCHAR NOT NULL,
    class VARCHAR NOT NULL
);
COMMENT ON TABLE main.kernel_rule IS 'Your own kernel classification rules, applied before the built-in ones; empty at first.';
COMMENT ON COLUMN main.kernel_rule.priority IS 'The matching rule with the lowest number wins. [-]';
COMMENT ON COLUMN main.kernel_rule.pattern IS 'Regular expression (RE2) that is searched for in the kernel name.';
COMMENT ON COLUMN main.kernel_rule.class IS 'Class that matching kernels get.';

CREATE TABLE main.why_rule (
    priority INTEGER NOT NULL,
    subject VARCHAR NOT NULL,
    pattern VARCHAR NOT NULL,
    reason VARCHAR NOT NULL
);
COMMENT ON TABLE main.why_rule IS 'Your own rules by which `tracedb why` finds the reason for a piece of step time, applied before the built-in ones (v1._why_rule); empty at first.';
COMMENT ON COLUMN main.why_rule.priority IS 'The matching rule with the lowest number wins. [-]';
COMMENT ON COLUMN main.why_rule.subject IS 'What the pattern is searched in: kernel (class, space, name), collective, copy, call or host (operator or range).';
COMMENT ON COLUMN main.why_rule.pattern IS 'Regular expression (RE2).';
COMMENT ON COLUMN main.why_rule.reason IS 'A reason of v1.why, or words of your own; computation for none.';

CREATE TABLE main.frame_rule (
    priority INTEGER NOT NULL,
    pattern VARCHAR NOT NULL,
    is_own BOOLEAN NOT NULL
);
COMMENT ON TABLE main.frame_rule IS 'The user''s own rules for whose code a Python frame is, tried before the shipped ones; empty at first.';
COMMENT ON COLUMN main.frame_rule.priority IS 'Lowest number wins. [-]';
COMMENT ON COLUMN main.frame_rule.pattern IS 'Regular expression (RE2) searched in frame.name.';
COMMENT ON COLUMN main.frame_rule.is_own IS 'Whether such a frame is the user''s own code.';

CREATE TABLE main.time_bound (
    name VARCHAR NOT NULL,
    limit_ns BIGINT NOT NULL CHECK (limit_ns > 0),
    applied_ns BIGINT NOT NULL
);
COMMENT ON TABLE main.time_bound IS 'Limits beyond which times count as impossible. Change limit_ns with UPDATE; the next ingest into the file checks every capture again.';
COMMENT ON COLUMN main.time_bound.name IS 'before_launch, near_zero, after_launch, far, far_without_calls or capture; docs/ingest.md explains each.';
COMMENT ON COLUMN main.time_bound.limit_ns IS 'The limit. [ns]';
COMMENT ON COLUMN main.time_bound.applied_ns IS 'The limit that time_fault and clock_fault in this file were computed with. [ns]';
INSERT INTO main.time_bound VALUES
    ('before_launch', 1000000, 1000000),
    ('near_zero', 100000000, 100000000),
    ('after_launch', 60000000000, 60000000000),
    ('far', 3600000000000, 3600000000000),
    ('far_without_calls', 86400000000000, 86400000000000),
    ('capture', 2592000000000000, 2592000000000000);

CREATE TABLE main.device_peak (
    priority INTEGER NOT NULL,
    device_name VARCHAR NOT NULL,
    source VARCHAR NOT NULL CHECK (source IN ('data sheet', 'measured')),
    memory_gbps DOUBLE,
    fp64_tflops DOUBLE,
    fp32_tflops DOUBLE,
    tf32_tflops DOUBLE,
    fp16_tflops DOUBLE,
    bf16_tflops DOUBLE,
    fp8_tflops DOUBLE,
    int8_tflops DOUBLE
);
COMMENT ON TABLE main.device_peak IS 'Peak rates of devices; may be edited. Initially from the vendors'' data sheets (dense matrix units with the default accumulator, for the module with the highest power limit); `tracedb sample --peaks` adds measured ones.';
COMMENT ON COLUMN main.device_peak.priority IS 'For each source, the matching row with the lowest number is used. [-]';
COMMENT ON COLUMN main.device_peak.device_name IS 'Regular expression (RE2) that is searched for in device.name.';
COMMENT ON COLUMN main.device_peak.source IS 'data sheet (the vendor''s figure, or your own), or measured.';
COMMENT ON COLUMN main.device_peak.memory_gbps IS 'Memory bandwidth, reads and writes together. [GB/s]';
COMMENT ON COLUMN main.device_peak.fp64_tflops IS 'Peak rate of fp64 matrix products. [TFLOP/s]';
COMMENT ON COLUMN main.device_peak.fp32_tflops IS 'Peak rate of fp32 matrix products in full precision. [TFLOP/s]';
COMMENT ON COLUMN main.device_peak.tf32_tflops IS 'Peak rate of fp32 matrix products in TF32 (AMD: XF32). [TFLOP/s]';
COMMENT ON COLUMN main.device_peak.fp16_tflops IS 'Peak rate of fp16 matrix products. [TFLOP/s]';
COMMENT ON COLUMN main.device_peak.bf16_tflops IS 'Peak rate of bf16 matrix products. [TFLOP/s]';
COMMENT ON COLUMN main.device_peak.fp8_tflops IS 'Peak rate of fp8 matrix products. [TFLOP/s]';
COMMENT ON COLUMN main.device_peak.int8_tflops IS 'Peak rate of int8 matrix products, in 10^12 operations per second. [TFLOP/s]';
INSERT INTO main.device_peak VALUES
    (100, 'B200', 'data sheet', 8000, 37, 75, 1100, 2250, 2250, 4500, 4500),
    (110, 'GH200', 'data sheet', 4000, 67, 67, 494.7, 989.4, 989.4, 1978.9, 1978.9),
    (120, 'H200 NVL', 'data sheet', 4800, 60, 60, 417.5, 835.5, 835.5, 1670.5, 1670.5),
    (121, 'H200', 'data sheet', 4800, 67, 67, 494.7, 989.4, 989.4, 1978.9, 1978.9),
    (130, 'H100 PCIe', 'data sheet', 2000, 51.2, 51.2, 378, 756, 756, 1513, 1513),
    (131, 'H100 NVL', 'data sheet', 3900, 60, 60, 417.5, 835.5, 835.5, 1670.5, 1670.5),
    (132, 'H100', 'data sheet', 3350, 67, 67, 494.7, 989.4, 989.4, 1978.9, 1978.9),
    (133, 'H800', 'data sheet', 3350, 1, 67, 494.7, 989.4, 989.4, 1978.9, 1978.9),
    (134, 'H20', 'data sheet', 4000, 1, 44, 74, 148, 148, 296, 296),
    (140, 'A100.*PCI.*40GB', 'data sheet', 1555, 19.5, 19.5, 156, 312, 312, NULL, 624),
    (141, 'A100.*PCI.*80GB', 'data sheet', 1935, 19.5, 19.5, 156, 312, 312, NULL, 624),
    (142, 'A100.*80GB', 'data sheet', 2039, 19.5, 19.5, 156, 312, 312, NULL, 624),
    (143, 'A100', 'data sheet', 1555, 19.5, 19.5, 156, 312, 312, NULL, 624),
    (144, 'A800', 'data sheet', 2039, 19.5, 19.5, 156, 312, 312, NULL, 624),
    (150, 'L40S', 'data sheet', 864, NULL, 91.6, 183, 362.05, 362.05, 733, 733),
    (151, 'L4\b', 'data sheet', 300, NULL, 30.3, 60, 121, 121, 242.5, 242.5),
    (152, 'A10\b', 'data sheet', 600, NULL, 31.2, 62.5, 125, 125, NULL, 250),
    (153, 'A40\b', 'data sheet', 696, NULL, 37.4, 74.8, 149.7, 149.7, NULL, 299.3),
    (160, 'V100.*PCIE', 'data sheet', 900, 7, 14, NULL, 112, NULL, NULL, NULL),
    (161, 'V100', 'data sheet', 900, 7.8, 15.7, NULL, 125, NULL, NULL, NULL),
    (162, 'T4\b', 'data sheet', 320, NULL, 8.1, NULL, 65, NULL, NULL, 130),
    (170, 'RTX 4090', 'data sheet', 1008, NULL, 82.6, 82.6, 165.2, 165.2, 330.3, 660.6),
    (171, 'RTX 3090\b', 'data sheet', 936, NULL, 35.6, 35.6, 71, 71, NULL, 284),
    (172, 'RTX 3060$', 'data sheet', 360, NULL, 12.7, 12.7, 25.5, 25.5, NULL, 102),
    (200, 'MI355X', 'data sheet', 8000, 78.6, 157.3, NULL, 2516.6, 2516.6, 5033.2, 5033.2),
    (201, 'MI350X', 'data sheet', 8000, 72.1, 144.2, NULL, 2306.9, 2306.9, 4613.7, 4613.7),
    (202, 'MI325X', 'data sheet', 6000, 163.4, 163.4, 653.7, 1307.4, 1307.4, 2614.9, 2614.9),
    (203, 'MI300X', 'data sheet', 5300, 163.4, 163.4, 653.7, 1307.4, 1307.4, 2614.9, 2614.9),
    (204, 'MI300A', 'data sheet', 5300, 122.6, 122.6, 490.3, 980.6, 980.6, 1961.2, 1961.2),
    (205, 'MI250X', 'data sheet', 1638.4, 47.9, 47.9, NULL, 191.5, 191.5, NULL, 191.5),
    (206, 'MI250', 'data sheet', 1638.4, 45.3, 45.3, NULL, 181, 181, NULL, 181),
    (207, 'MI210', 'data sheet', 1638.4, 45.3, 45.3, NULL, 181, 181, NULL, 181),
    (208, 'MI100', 'data sheet', 1228.8, 11.5, 46.1, NULL, 184.6, 92.3, NULL, 184.6);
