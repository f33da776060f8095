-- How long does an operator take at this shape? The training table of `tracedb fit`, with all its inputs.
-- Grain: sampled shape × pass of a capture and device: all iterations of a range PASS|OPERATOR|key=value|…, or one row
-- of main.operator_sample. Lists keep every iteration, so that other statistics are easy to compute; target_ns is the
-- training target. Repeats are rows with the same GPU, operator, element type, pass and shape.
CREATE VIEW v1.operator_samples AS
WITH devices AS (
    SELECT d.capture_id, d.device_id, min(d.name) AS gpu, min(d.sm_count) AS sm_count
    FROM main.device AS d
    GROUP BY d.capture_id, d.device_id
),
bursts AS (
    SELECT
        b.capture_id, b.operator, b.pass, list_sort(map_entries(b.shape)) AS shape_key,
        median(b.whole_energy_j) FILTER (NOT b.is_diluted) AS energy_j,
        round(median(b.host_ns))::BIGINT AS host_ns
    FROM v1._operator_burst AS b
    GROUP BY b.capture_id, b.operator, b.pass, list_sort(map_entries(b.shape))
),
iterations AS (
    SELECT
        /* by r */ /* grain */ r.capture_id, r.source, r.rank, r.labels, r.device_id, /* end grain */
        d.gpu, d.sm_count,
        r.rule, r.operator, r.pass, r.dtype, r.shape,
        r.start_ns, r.capture_id AS clock_id, r.annotation_id,
        r.range_ns, r.busy_ns, r.span_ns, r.kernel_sum_ns, r.target_ns, r.is_matched,
        r.gpu_events, r.regime, r.sm_clock_mhz, r.memory_clock_mhz, r.power_w, u.energy_j, u.host_ns
    FROM v1._operator_iteration AS r /* join r */
    LEFT JOIN devices AS d ON d.capture_id = r.capture_id AND d.device_id = r.device_id
    LEFT JOIN bursts AS u
        ON u.capture_id = r.capture_id AND u.operator = r.operator AND u.pass = r.pass
        AND u.shape_key = list_sort(map_entries(r.shape))
    WHERE true /* filter r */
),
sampled AS (
    SELECT
        /* by */
        /* grain */
        i.capture_id,
        any_value(i.source) AS source,
        any_value(i.rank) AS rank,
        any_value(i.labels) AS labels,
        min(i.device_id) AS device_id,
        /* end grain */
        min(i.gpu) AS gpu,
        min(i.sm_count) AS sm_count,
        i.operator, i.pass, i.dtype, i.shape,
        min(i.rule) AS rule,
        count(i.busy_ns) AS n,
        count(*) AS iterations,
        median(i.range_ns) AS range_median_ns,
        median(i.span_ns) AS span_median_ns,
        median(i.busy_ns) AS busy_median_ns,
        median(i.target_ns) AS target_ns,
        bool_or(i.is_matched) AS is_matched,
        median(i.kernel_sum_ns) AS kernel_sum_median_ns,
        sum(i.busy_ns) / count(i.busy_ns) AS busy_mean_ns,
        v1._sample_stddev(
            count(i.busy_ns), sum(i.busy_ns), sum(i.busy_ns::HUGEINT * i.busy_ns)
        ) AS busy_stddev_ns,
        min(i.busy_ns) AS busy_min_ns,
        max(i.busy_ns) AS busy_max_ns,
        median(i.gpu_events) AS gpu_events,
        median(i.sm_clock_mhz) AS sm_clock_mhz,
        median(i.memory_clock_mhz) AS memory_clock_mhz,
        sum(i.power_w) / count(i.power_w) AS power_w,
        median(i.energy_j) AS energy_j,
        round(median(i.host_ns))::BIGINT AS host_ns,
        CASE WHEN count(i.regime) = count(*) AND count(DISTINCT i.regime) = 1 THEN min(i.regime) END AS regime,
        list(i.busy_ns ORDER BY i.clock_id, i.start_ns, i.annotation_id) AS busy_iterations_ns,
        list(i.span_ns ORDER BY i.clock_id, i.start_ns, i.annotation_id) AS span_iterations_ns,
        list(i.kernel_sum_ns ORDER BY i.clock_id, i.start_ns, i.annotation_id) AS kernel_sum_iterations_ns
    FROM iterations AS i
    GROUP BY /* by */ /* grain */ i.capture_id, /* end grain */ i.operator, i.pass, i.dtype, i.shape
),
measured AS (
    SELECT
        /* by r */ /* grain */ r.capture_id, r.source, r.rank, r.labels, /* end grain */
        r.gpu, r.operator, r.pass, r.dtype, r.shape, r.statistic, r.time_ns
    FROM v1._measured_sample AS r /* join r */
    WHERE true /* filter r */
),
samples AS (
    SELECT
        /* by s */ /* grain */ s.capture_id, s.source, s.rank, s.labels, s.device_id, /* end grain */
        s.gpu, s.sm_count, s.operator, s.pass, s.dtype, s.shape, list_sort(map_entries(s.shape)) AS shape_key,
        CASE WHEN s.n = 0 THEN 'no_gpu_activity' ELSE 'measured' END AS status,
        s.target_ns,
        CASE WHEN s.is_matched THEN 'transfer_median' WHEN s.n > 0 THEN 'busy_median' END AS statistic,
        s.rule, s.n, s.iterations,
        s.range_median_ns, s.span_median_ns, s.busy_median_ns, s.kernel_sum_median_ns,
        s.busy_mean_ns, s.busy_stddev_ns, s.busy_min_ns, s.busy_max_ns,
        CASE WHEN s.n >= 7 THEN list_avg(list_sort(s.span_iterations_ns)[3:7]) END AS span_trimmed_mean_ns,
        CASE WHEN s.n >= 7 THEN list_avg(list_sort(s.busy_iterations_ns)[3:7]) END AS busy_trimmed_mean_ns,
        s.busy_iterations_ns, s.span_iterations_ns, s.kernel_sum_iterations_ns,
        s.gpu_events, s.sm_clock_mhz, s.memory_clock_mhz, s.power_w, s.regime, s.energy_j, s.host_ns
    FROM sampled AS s
    UNION ALL BY NAME
    SELECT
        /* by m */ /* grain */ m.capture_id, m.source, m.rank, m.labels, /* end grain */
        m.gpu, m.operator, m.pass, m.dtype, m.shape, list_sort(map_entries(m.shape)) AS shape_key,
        'measured' AS status,
        m.time_ns AS target_ns,
        m.statistic,
        CASE WHEN m.statistic = 'span_trimmed_mean' THEN m.time_ns END AS span_trimmed_mean_ns
    FROM measured AS m
),
keyed AS (
    SELECT
        /* by s */ /* grain */ s.capture_id, s.source, s.rank, s.labels, s.device_id, /* end grain */
        s.gpu, s.sm_count, s.operator, s.pass, s.dtype, s.shape,
        s.status, s.target_ns, s.statistic, s.rule, s.n, s.iterations,
        s.range_median_ns, s.span_median_ns, s.busy_median_ns, s.kernel_sum_median_ns,
        s.busy_mean_ns, s.busy_stddev_ns, s.busy_min_ns, s.busy_max_ns,
        s.busy_trimmed_mean_ns, s.span_trimmed_mean_ns,
        s.busy_iterations_ns, s.span_iterations_ns, s.kernel_sum_iterations_ns,
        s.gpu_events, s.sm_clock_mhz, s.memory_clock_mhz, s.power_w, s.regime, s.energy_j, s.host_ns,
        count(s.target_ns) OVER same_shape AS repeats,
        100.0 * (max(s.target_ns) OVER same_shape - min(s.target_ns) OVER same_shape)
        / nullif(avg(s.target_ns) OVER same_shape, 0) AS spread_percent,
        median(s.target_ns) FILTER (s.pass = 'fwd') OVER both_passes AS forward_ns,
        median(s.target_ns) FILTER (s.pass = 'bwd') OVER both_passes AS backward_ns
    FROM samples AS s
    WINDOW
        same_shape AS (PARTITION BY /* by s */ s.gpu, s.operator, s.dtype, s.pass, s.regime, s.shape_key),
        both_passes AS (
            PARTITION BY
                /* by s */ /* grain */ s.capture_id, /* end grain */ s.gpu, s.operator, s.dtype, s.regime, s.shape_key
        )
)
SELECT
    /* by q */ /* grain */ q.capture_id, q.source, q.rank, q.labels, q.device_id, /* end grain */
    q.gpu, q.sm_count, q.operator, q.pass, q.dtype, q.shape,
    q.status, q.target_ns, q.statistic, q.rule, q.n, q.iterations,
    q.range_median_ns, q.span_median_ns, q.busy_median_ns, q.kernel_sum_median_ns,
    q.busy_mean_ns, q.busy_stddev_ns, q.busy_min_ns, q.busy_max_ns,
    q.busy_trimmed_mean_ns, q.span_trimmed_mean_ns,
    q.busy_iterations_ns, q.span_iterations_ns, q.kernel_sum_iterations_ns,
    q.gpu_events, q.sm_clock_mhz, q.memory_clock_mhz, q.power_w, q.regime, q.energy_j, q.host_ns,
    q.repeats,
    CASE WHEN q.repeats > 1 THEN q.spread_percent END AS repeat_spread_percent,
    [f FOR f IN [
        CASE WHEN q.status <> 'measured' THEN q.status END,
        CASE WHEN q.n < 3 AND q.status = 'measured' THEN 'few_iterations' END,
        CASE
            WHEN q.busy_max_ns > 1.2 * q.busy_median_ns OR q.busy_min_ns < q.busy_median_ns / 1.2
                THEN 'outlying_iteration'
        END,
        CASE WHEN q.pass = 'bwd' AND q.backward_ns < q.forward_ns THEN 'backward_shorter_than_forward' END,
        CASE WHEN q.pass = 'bwd' AND q.backward_ns = q.forward_ns THEN 'backward_equals_forward' END,
        CASE WHEN q.repeats > 1 AND q.spread_percent > 5 THEN 'repeats_differ' END
    ] IF f IS NOT NULL] AS flags
FROM keyed AS q;

COMMENT ON VIEW v1.operator_samples IS 'Sampled operators with every iteration, and the time that tracedb fit is trained on. Grain: sampled shape × pass of a capture and device.';
COMMENT ON COLUMN v1.operator_samples.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN v1.operator_samples.source IS 'Profiler or format: torch and others for recorded events, samples for times measured by another tool.';
COMMENT ON COLUMN v1.operator_samples.rank IS 'Rank of the capture; NULL if unknown. [-]';
COMMENT ON COLUMN v1.operator_samples.labels IS 'Labels of the capture.';
COMMENT ON COLUMN v1.operator_samples.device_id IS 'Device that the work ran on; NULL if only a summary was recorded. [-]';
COMMENT ON COLUMN v1.operator_samples.gpu IS 'GPU name as recorded.';
COMMENT ON COLUMN v1.operator_samples.sm_count IS 'Streaming multiprocessors or compute units of the GPU; NULL if not recorded. [count]';
COMMENT ON COLUMN v1.operator_samples.operator IS 'Operator name, such as linear1 or flash_atten.';
COMMENT ON COLUMN v1.operator_samples.pass IS 'fwd, bwd, step (optimizer) or comm (collective).';
COMMENT ON COLUMN v1.operator_samples.dtype IS 'Element type (fp16, bf16, fp32, fp64): from the dtype key of the range or from sample_status, else from the first floating-point input or kernel argument, else from the label dtype.';
COMMENT ON COLUMN v1.operator_samples.shape IS 'Map from shape parameter to value, from the text of the range. [-]';
COMMENT ON COLUMN v1.operator_samples.status IS 'measured, or no_gpu_activity (the ranges launched nothing). sample_status lists shapes that could not be sampled.';
COMMENT ON COLUMN v1.operator_samples.target_ns IS 'Training target of tracedb fit: busy_median_ns, or the recorded time if only one was recorded. For a collective whose ranks were recorded together, the transfer time on the first rank''s row and NULL on the others. [ns]';
COMMENT ON COLUMN v1.operator_samples.statistic IS 'Which statistic target_ns is: busy_median; transfer_median (median over calls of the fastest rank''s time, without waiting); or span_trimmed_mean (estimate-train-time''s mean of the 3rd to 7th smallest of ten spans).';
COMMENT ON COLUMN v1.operator_samples.rule IS 'process: the GPU work was launched inside the range by any thread; time: it started inside the range (launches not recorded); NULL if no events were recorded.';
COMMENT ON COLUMN v1.operator_samples.n IS 'Iterations with GPU work; NULL if not recorded. [count]';
COMMENT ON COLUMN v1.operator_samples.iterations IS 'Iterations of the range; NULL if not recorded. [count]';
COMMENT ON COLUMN v1.operator_samples.range_median_ns IS 'Median over iterations of the range''s duration on the host; the only time of CPU samples. [ns]';
COMMENT ON COLUMN v1.operator_samples.span_median_ns IS 'Median span over iterations: first start to last end of the GPU work. [ns]';
COMMENT ON COLUMN v1.operator_samples.busy_median_ns IS 'Median busy time over iterations: the union of the intervals of kernels, copies and memsets. [ns]';
COMMENT ON COLUMN v1.operator_samples.kernel_sum_median_ns IS 'Median over iterations of the sum of GPU durations. [ns]';
COMMENT ON COLUMN v1.operator_samples.busy_mean_ns IS 'Mean busy time over iterations. [ns]';
COMMENT ON COLUMN v1.operator_samples.busy_stddev_ns IS 'Sample standard deviation of the busy time over iterations, 0 for one. [ns]';
COMMENT ON COLUMN v1.operator_samples.busy_min_ns IS 'Shortest busy time of an iteration. [ns]';
COMMENT ON COLUMN v1.operator_samples.busy_max_ns IS 'Longest busy time of an iteration. [ns]';
COMMENT ON COLUMN v1.operator_samples.busy_trimmed_mean_ns IS 'Mean of the 3rd to 7th smallest busy time (estimate-train-time''s statistic); NULL with fewer than 7 iterations. [ns]';
COMMENT ON COLUMN v1.operator_samples.span_trimmed_mean_ns IS 'Mean of the 3rd to 7th smallest span (estimate-train-time''s statistic); NULL with fewer than 7 iterations. [ns]';
COMMENT ON COLUMN v1.operator_samples.busy_iterations_ns IS 'Busy time of each iteration, in time order. [ns]';
COMMENT ON COLUMN v1.operator_samples.span_iterations_ns IS 'Span of each iteration, in time order. [ns]';
COMMENT ON COLUMN v1.operator_samples.kernel_sum_iterations_ns IS 'Sum of GPU durations of each iteration, in time order. [ns]';
COMMENT ON COLUMN v1.operator_samples.gpu_events IS 'Median over iterations of the number of kernels, copies and memsets; NULL if not recorded. [count]';
COMMENT ON COLUMN v1.operator_samples.sm_clock_mhz IS 'Median SM clock, from the last reading in the 150 ms before each iteration; NULL if there is none (device_condition). [MHz]';
COMMENT ON COLUMN v1.operator_samples.memory_clock_mhz IS 'Median clock of the device memory, likewise. [MHz]';
COMMENT ON COLUMN v1.operator_samples.power_w IS 'Mean power of the device, likewise; in the steady regime mostly that of the load between the iterations. [W]';
COMMENT ON COLUMN v1.operator_samples.regime IS 'steady: between iterations, the device was kept at the power and clock of a training step; rested: it rested; NULL if unknown.';
COMMENT ON COLUMN v1.operator_samples.energy_j IS 'Energy that the device drew for a call when the operator was repeated alone, with the share of an idle device; NULL if it was not (operator_burst). [J]';
COMMENT ON COLUMN v1.operator_samples.host_ns IS 'Time in which the host launches a call, without the profiler; NULL if it was not measured (operator_burst). [ns]';
COMMENT ON COLUMN v1.operator_samples.repeats IS 'Number of measured rows with the same GPU, operator, element type, pass, regime and shape, including this one. [count]';
COMMENT ON COLUMN v1.operator_samples.repeat_spread_percent IS '(Largest − smallest target_ns) / mean over these rows: a noise floor for any model; NULL for one row. [percent]';
COMMENT ON COLUMN v1.operator_samples.flags IS 'Quality flags: no_gpu_activity; few_iterations (fewer than 3); outlying_iteration (one is 20 % off the median, for example cold or at another clock); backward_shorter_than_forward; backward_equals_forward (copied, not measured); repeats_differ (by more than 5 %).';
