-- Which operators took longer than models of their GPU say for their shapes, and how much time was lost?
-- Grain: capture × device × operator × input shapes × element type × pass, of captures with predictions
-- (main.expected_time). Times are sums over calls. A call loses what it takes beyond the upper end of its interval.
-- Verdicts should survive many comparisons: the interval of nine in ten is widened to the one that all rows of the answer
-- together leave with 5 %, if deviations have exponential tails: half its width times 1 + log10(rows), on a log scale;
-- and at least 5 %. Where most of a device's predicted time is beyond its plain interval, chance is no explanation, and the
-- plain one decides: a slow GPU, or lower clocks. The calls alone and those beside a collective are judged by their medians; beside one, 15 % are
-- expected, because it takes bandwidth and multiprocessors. Then single calls far beyond (as for all calls of the answer,
-- and 15 %) that lose a tenth of the predicted time: two or more, or one if the device has three or more that lose a tenth
-- of its predicted time, because a GPU shared with another process stops one kernel here and one there. A row that loses less than a thousandth of the
-- operators' time on its device is not named.
CREATE VIEW v1.expected AS
WITH calls AS (
    SELECT
        /* by o */
        /* grain */ o.clock_id, o.gpu_id, /* end grain */
        o.name, o.input_dims, o.math_dtype AS dtype, o.pass,
        o.busy_ns, o.is_beside, o.is_alone,
        p.predicted_ns, p.low_ns, p.high_ns, p.basis, p.samples,
        o.busy_ns / p.predicted_ns AS ratio,
        greatest(o.busy_ns - p.high_ns, 0) AS lost_ns,
        ratio > greatest(
            1.15, exp(ln(p.high_ns / p.predicted_ns) * (1 + log10(count(p.predicted_ns) OVER ())))
        ) AS is_far
    FROM v1._operator_call AS o /* inline */
    LEFT JOIN main.expected_time AS p
        ON p.capture_id = o.clock_id AND p.name = o.name AND p.input_dims = o.input_dims AND p.pass = o.pass
        AND p.input_types IS NOT DISTINCT FROM o.input_types
        AND p.math_dtype IS NOT DISTINCT FROM o.math_dtype
    WHERE o.input_dims IS NOT NULL AND o.pass <> 'comm'
        AND o.clock_id IN (SELECT t.capture_id FROM main.expected_time AS t)
),
sums AS (
    SELECT
        /* by c */
        /* grain */ c.clock_id, c.gpu_id, /* end grain */
        c.name, c.input_dims, c.dtype, c.pass,
        count(*) AS calls,
        count(*) FILTER (c.is_beside) AS beside_calls,
        sum(c.busy_ns) AS measured_ns,
        CASE WHEN count(c.predicted_ns) = count(*) THEN sum(c.predicted_ns) END AS predicted_ns,
        CASE WHEN count(c.predicted_ns) = count(*) THEN sum(c.low_ns) END AS low_ns,
        CASE WHEN count(c.predicted_ns) = count(*) THEN sum(c.high_ns) END AS high_ns,
        CASE WHEN count(c.predicted_ns) = count(*) THEN sum(c.lost_ns) END AS lost_ns,
        median(c.ratio) FILTER (c.is_alone) AS alone_ratio,
        median(c.ratio) FILTER (c.is_beside) AS beside_ratio,
        CASE WHEN count(c.predicted_ns) = count(*) THEN count(*) FILTER (c.is_far AND c.is_alone) END AS far_calls,
        sum(c.lost_ns) FILTER (c.is_far AND c.is_alone) AS far_ns,
        min(c.basis) AS basis,
        sum(c.samples)::BIGINT // count(*) AS samples
    FROM calls AS c
    GROUP BY ALL
),
compared AS (
    SELECT
        /* by u */
        /* grain */ u.clock_id, u.gpu_id, /* end grain */
        u.name, u.input_dims, u.dtype, u.pass, u.calls, u.beside_calls,
        u.measured_ns, u.predicted_ns, u.low_ns, u.high_ns, u.lost_ns,
        u.alone_ratio, u.beside_ratio, u.far_calls, u.far_ns, u.basis, u.samples,
        100.0 * coalesce(sum(u.predicted_ns) FILTER (u.alone_ratio > u.high_ns / u.predicted_ns) OVER device, 0)
        / sum(u.predicted_ns) FILTER (u.alone_ratio IS NOT NULL) OVER device AS device_slow_percent,
        median(u.alone_ratio) OVER device AS device_ratio,
        sum(u.far_calls) OVER device AS device_far_calls,
        100.0 * coalesce(sum(u.far_ns) OVER device, 0) / sum(u.predicted_ns) OVER device AS device_far_percent,
        u.lost_ns >= 0.001 * sum(u.measured_ns) OVER device AS is_much,
        count(u.predicted_ns) OVER () AS compared_rows
    FROM sums AS u
    WINDOW device AS (PARTITION BY /* by u */ /* grain */ u.clock_id, u.gpu_id, /* end grain */ 1)
),
judged AS (
    SELECT
        /* by q */
        /* grain */ q.clock_id, q.gpu_id, /* end grain */
        q.name, q.input_dims, q.dtype, q.pass, q.calls, q.beside_calls,
        q.measured_ns, q.predicted_ns, q.low_ns, q.high_ns, q.lost_ns,
        q.alone_ratio, q.beside_ratio, q.far_calls, q.far_ns, q.basis, q.samples,
        q.device_slow_percent, q.device_ratio, q.device_far_calls, q.device_far_percent, q.is_much,
        greatest(1.05, exp(
            ln(q.high_ns / q.predicted_ns)
            * CASE WHEN q.device_slow_percent > 50 THEN 1 ELSE 1 + log10(q.compared_rows) END
        )) AS limit_ratio
    FROM compared AS q
)
SELECT
    /* by j */
    /* grain */ j.clock_id AS capture_id, t.rank, t.labels, j.gpu_id AS device_id, /* end grain */
    j.name,
    j.input_dims,
    j.dtype,
    j.pass,
    j.calls,
    j.measured_ns::BIGINT AS measured_ns,
    round(j.predicted_ns)::BIGINT AS predicted_ns,
    round(j.low_ns)::BIGINT AS low_ns,
    round(j.high_ns)::BIGINT AS high_ns,
    round(j.lost_ns)::BIGINT AS lost_ns,
    CASE
        WHEN j.predicted_ns IS NULL THEN 'unknown'
        WHEN j.is_much AND j.alone_ratio > j.limit_ratio THEN 'slower'
        WHEN j.is_much AND j.beside_ratio > greatest(1.15, j.limit_ratio) THEN 'slower beside collectives'
        WHEN j.is_much AND j.far_ns > 0.1 * j.predicted_ns
            AND (j.far_calls >= 2 OR j.device_far_calls >= 3 AND j.device_far_percent > 10) THEN 'slower at times'
        WHEN coalesce(j.alone_ratio, j.beside_ratio) < 1 / j.limit_ratio THEN 'faster'
        ELSE 'as expected'
    END AS verdict,
    j.measured_ns / j.predicted_ns AS ratio,
    j.alone_ratio,
    j.beside_calls,
    j.beside_ratio,
    j.far_calls,
    j.limit_ratio,
    j.device_slow_percent,
    j.device_ratio,
    j.device_far_percent,
    j.basis,
    j.samples
FROM judged AS j
/* grain */ LEFT JOIN main.capture AS t ON t.capture_id = j.clock_id /* end grain */;

COMMENT ON VIEW v1.expected IS 'Measured times of operators beside those that models of their GPU predict for their shapes, after tracedb expected. Grain: capture × device × operator × input shapes × element type × pass.';
COMMENT ON COLUMN v1.expected.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN v1.expected.rank IS 'Rank of the capture; NULL if unknown. [-]';
COMMENT ON COLUMN v1.expected.labels IS 'Labels of the capture: sweep, threads, channels and others.';
COMMENT ON COLUMN v1.expected.device_id IS 'Device number within the capture. [-]';
COMMENT ON COLUMN v1.expected.name IS 'Operator as recorded, such as aten::mm.';
COMMENT ON COLUMN v1.expected.input_dims IS 'Input shapes, as JSON text as recorded.';
COMMENT ON COLUMN v1.expected.dtype IS 'Element type of the arithmetic: math_dtype of operator_calls.';
COMMENT ON COLUMN v1.expected.pass IS 'fwd, bwd or step, as in operator_calls.';
COMMENT ON COLUMN v1.expected.calls IS 'Calls that launched GPU work. [count]';
COMMENT ON COLUMN v1.expected.measured_ns IS 'Sum of their busy times. [ns]';
COMMENT ON COLUMN v1.expected.predicted_ns IS 'Predicted time of all calls, if no collective ran beside them; NULL if the models do not know the operator at this shape. [ns]';
COMMENT ON COLUMN v1.expected.low_ns IS 'Lower end of the interval of the predicted time, which should hold nine of ten runs. [ns]';
COMMENT ON COLUMN v1.expected.high_ns IS 'Upper end of that interval. [ns]';
COMMENT ON COLUMN v1.expected.lost_ns IS 'Sum over calls of the time beyond the upper end of their interval; also a row as expected loses a little, as one call of twenty lies beyond. [ns]';
COMMENT ON COLUMN v1.expected.verdict IS 'slower (the median of the calls alone is beyond limit_ratio), slower beside collectives (only that of calls beside a collective is, and beyond 1.15), slower at times (single calls far beyond lose a tenth of the predicted time: two or more, or one if device_far_percent is above 10 with at least three such calls of the device), faster, as expected, or unknown (no prediction).';
COMMENT ON COLUMN v1.expected.ratio IS 'Measured over predicted time. [ratio]';
COMMENT ON COLUMN v1.expected.alone_ratio IS 'Median over the calls beside which neither a collective nor a kernel of another stream ran of measured over predicted time; NULL without such calls. [ratio]';
COMMENT ON COLUMN v1.expected.beside_calls IS 'Calls beside which a collective ran. [count]';
COMMENT ON COLUMN v1.expected.beside_ratio IS 'Median over these calls of measured over predicted time. [ratio]';
COMMENT ON COLUMN v1.expected.far_calls IS 'Calls alone that are far beyond the interval, among all calls of the answer; NULL without a prediction. [count]';
COMMENT ON COLUMN v1.expected.limit_ratio IS 'Ratio beyond which a median is named: the interval, widened for the number of rows of the answer unless device_slow_percent is above 50; at least 1.05. [ratio]';
COMMENT ON COLUMN v1.expected.device_slow_percent IS 'Share of the predicted time of the device (or of the --by group) in operators whose median alone is beyond their interval; more than 50 means a slow GPU or lower clocks; NULL if no call was alone. [percent]';
COMMENT ON COLUMN v1.expected.device_ratio IS 'Median over the operators of the device (or of the --by group) of alone_ratio: how much slower the GPU is as a whole, as by lower clocks; NULL if no call was alone. [ratio]';
COMMENT ON COLUMN v1.expected.device_far_percent IS 'Time that single calls far beyond their intervals (far_calls) lose on the device (or in the --by group), of its predicted time; more than 10 with a device_ratio near 1 means that something stops its kernels at times, such as another process on the GPU. [percent]';
COMMENT ON COLUMN v1.expected.basis IS 'recorded (time at the same shapes in other traces), model (of the operator, at this shape) or others (the other captures of this file).';
COMMENT ON COLUMN v1.expected.samples IS 'Calls, or shapes of the model, that the prediction is based on. [count]';
