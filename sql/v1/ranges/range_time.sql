-- How long does a range take per instance: on the CPU, on the GPU from first start to last end, and in kernels? Warm-up
-- is separate.
-- Grain: rule × domain × name × style. Warm-up: see v1._range_instance. Instances without GPU work and ranges still
-- open are excluded from averages for which they have no value.
CREATE VIEW v1.range_time AS
SELECT
    /* by t */
    rule,
    name,
    domain,
    style,
    count(*) FILTER (NOT is_warmup) AS instances,
    sum(duration_ns) FILTER (NOT is_warmup) / count(duration_ns) FILTER (NOT is_warmup) AS range_avg_ns,
    median(duration_ns) FILTER (NOT is_warmup) AS range_median_ns,
    sum(projected_ns) FILTER (NOT is_warmup) / count(projected_ns) FILTER (NOT is_warmup) AS projected_avg_ns,
    median(projected_ns) FILTER (NOT is_warmup) AS projected_median_ns,
    min(projected_ns) FILTER (NOT is_warmup) AS projected_min_ns,
    max(projected_ns) FILTER (NOT is_warmup) AS projected_max_ns,
    sum(kernel_ns) FILTER (NOT is_warmup) / count(projected_ns) FILTER (NOT is_warmup) AS kernel_avg_ns,
    sum(kernels) FILTER (NOT is_warmup) / count(projected_ns) FILTER (NOT is_warmup) AS kernels_per_instance,
    count(*) FILTER (is_warmup) AS warmup_instances,
    sum(duration_ns) FILTER (is_warmup) / count(duration_ns) FILTER (is_warmup) AS warmup_range_avg_ns,
    sum(projected_ns) FILTER (is_warmup) / count(projected_ns) FILTER (is_warmup) AS warmup_projected_avg_ns
FROM v1._range_span AS t /* inline */
GROUP BY /* by t */ rule, name, domain, style;

COMMENT ON VIEW v1.range_time IS 'Time of a range per instance, on the CPU and on the GPU, excluding warm-up. There are rows for each rule of range membership, which do not add up: select one (WHERE rule = ''process''). Grain: rule × domain × name × style.';
COMMENT ON COLUMN v1.range_time.rule IS 'How GPU events are assigned to ranges: thread (launched inside, on the thread of the range), process (launched inside, on any thread, such as autograd''s), time (started inside; used if launches were not recorded). There is a row for each rule: select one. The report uses process.';
COMMENT ON COLUMN v1.range_time.name IS 'Text of the range.';
COMMENT ON COLUMN v1.range_time.domain IS 'NVTX domain; NULL for the default domain.';
COMMENT ON COLUMN v1.range_time.style IS 'push_pop, start_end, user (record_function).';
COMMENT ON COLUMN v1.range_time.instances IS 'Number of instances, excluding warm-up. The columns that follow cover only these. [count]';
COMMENT ON COLUMN v1.range_time.range_avg_ns IS 'Mean duration on the CPU. [ns]';
COMMENT ON COLUMN v1.range_time.range_median_ns IS 'Median duration on the CPU, mean of the middle two. [ns]';
COMMENT ON COLUMN v1.range_time.projected_avg_ns IS 'Mean time on the GPU, from first start to last end; NULL without GPU work. [ns]';
COMMENT ON COLUMN v1.range_time.projected_median_ns IS 'Median time on the GPU, mean of the middle two. [ns]';
COMMENT ON COLUMN v1.range_time.projected_min_ns IS 'Shortest time on the GPU. [ns]';
COMMENT ON COLUMN v1.range_time.projected_max_ns IS 'Longest time on the GPU. [ns]';
COMMENT ON COLUMN v1.range_time.kernel_avg_ns IS 'Mean sum of kernel durations, over instances with GPU work. [ns]';
COMMENT ON COLUMN v1.range_time.kernels_per_instance IS 'Mean number of kernels, over instances with GPU work. [count]';
COMMENT ON COLUMN v1.range_time.warmup_instances IS 'Number of warm-up instances: those inside a range named warmup; if there is none and no steps are marked, the first instance on each thread. [count]';
COMMENT ON COLUMN v1.range_time.warmup_range_avg_ns IS 'Mean duration of warm-up instances on the CPU. [ns]';
COMMENT ON COLUMN v1.range_time.warmup_projected_avg_ns IS 'Mean time of warm-up instances on the GPU. [ns]';
