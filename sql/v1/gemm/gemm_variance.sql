-- How much does the time of one GEMM vary, and do overlapping collectives explain it?
-- Grain: capture × device × kernel name × input shapes, class matmul. A call is overlapped if a collective on its
-- device starts before it ends and ends after it starts. The explained share of the spread is the sum of squares
-- between overlapped and other calls divided by the total sum of squares. Sums are integers, exact for every row order
-- (see top_kernels). One sorted pass (ASOF) finds the collective that reaches furthest; operators, which have long texts,
-- are joined after it, and only those of GEMMs.
CREATE VIEW v1.gemm_variance AS
WITH gemms AS (
    SELECT
        /* by e */
        e.capture_id AS clock_id,
        e.device_id AS gpu_id,
        e.op_id,
        e.name,
        e.start_ns,
        e.end_ns,
        e.duration_ns
    FROM v1._gpu_event AS e /* join e */
    WHERE e.kind = 'kernel' AND e.class = 'matmul' /* filter e */
),
collective_captures AS (
    SELECT DISTINCT e.capture_id
    FROM v1._gpu_event AS e
    WHERE e.kind = 'kernel' AND e.class = 'collective'
),
beside AS (
    SELECT
        /* by */
        g.clock_id,
        g.gpu_id,
        g.op_id,
        g.name,
        g.start_ns,
        g.duration_ns,
        coalesce(s.reach_ns > g.start_ns, false) AS is_overlapped
    FROM gemms AS g
    ASOF LEFT JOIN v1._collective_span AS s
        ON s.capture_id = g.clock_id AND v1._asof_key(s.device_id) = v1._asof_key(g.gpu_id) AND s.start_ns < g.end_ns
),
-- Only operators of GEMMs: their join then has no rows to spill whose texts are not needed.
operators AS (
    SELECT o.capture_id, o.op_id, o.name, o.input_dims
    FROM main.op AS o
    WHERE EXISTS (SELECT 1 FROM gemms AS g WHERE g.clock_id = o.capture_id AND g.op_id = o.op_id)
),
calls AS (
    SELECT
        /* by */
        b.clock_id,
        b.gpu_id,
        b.name,
        o.input_dims,
        o.name AS op_name,
        b.start_ns,
        b.duration_ns,
        c.capture_id IS NOT NULL AS has_collectives,
        b.is_overlapped
    FROM beside AS b
    LEFT JOIN operators AS o ON o.capture_id = b.clock_id AND o.op_id = b.op_id
    LEFT JOIN collective_captures AS c ON c.capture_id = b.clock_id
),
sums AS (
    SELECT
        /* by */
        /* grain */ clock_id, gpu_id, /* end grain */
        name,
        input_dims,
        v1._operator_matmul(max(op_name), input_dims) AS product,
        count(*) AS calls,
        sum(duration_ns) AS total_ns,
        sum(duration_ns::HUGEINT * duration_ns) AS squares,
        min(duration_ns) AS min_ns,
        max(duration_ns) AS max_ns,
        quantile_cont(duration_ns, [0.5, 0.95, 0.99]) AS quantiles,
        arg_min(start_ns, (duration_ns, start_ns)) AS start_of_min_ns,
        arg_min(start_ns, (-duration_ns, start_ns)) AS start_of_max_ns,
        bool_or(has_collectives) AS has_collectives,
        count(*) FILTER (is_overlapped) AS overlapped_calls,
        count(*) FILTER (NOT is_overlapped) AS alone_calls,
        sum(duration_ns) FILTER (is_overlapped) / count(*) FILTER (is_overlapped) AS overlapped_mean_ns,
        sum(duration_ns) FILTER (NOT is_overlapped) / count(*) FILTER (NOT is_overlapped) AS alone_mean_ns
    FROM calls
    GROUP BY /* by */ /* grain */ clock_id, gpu_id, /* end grain */ name, input_dims
)
SELECT
    /* by s */
    /* grain */ c.capture_id, c.rank, c.labels, gpu_id AS device_id, /* end grain */
    s.name,
    s.input_dims,
    s.product.batch::BIGINT AS batch, s.product.m::BIGINT AS m, s.product.n::BIGINT AS n, s.product.k::BIGINT AS k,
    calls,
    total_ns::BIGINT AS total_ns,
    (total_ns - calls * min_ns)::BIGINT AS excess_ns,
    total_ns / calls AS mean_ns,
    v1._sample_stddev(calls, total_ns, squares) AS stddev_ns,
    100 * stddev_ns / nullif(mean_ns, 0) AS cv_percent,
    min_ns,
    max_ns,
    max_ns - min_ns AS spread_ns,
    quantiles[1] AS p50_ns,
    quantiles[2] AS p95_ns,
    quantiles[3] AS p99_ns,
    start_of_min_ns,
    start_of_max_ns,
    overlapped_calls,
    alone_calls,
    overlapped_mean_ns,
    alone_mean_ns,
    overlapped_mean_ns / nullif(alone_mean_ns, 0) AS slowdown,
    CASE WHEN overlapped_calls > 0 AND alone_calls > 0 AND min_ns < max_ns THEN least(
        100, 100.0 * overlapped_calls * alone_calls / calls * (overlapped_mean_ns - alone_mean_ns) ** 2
        / (stddev_ns ** 2 * (calls - 1))) END AS spread_explained_percent,
    CASE
        WHEN NOT has_collectives THEN 'no collectives'
        WHEN overlapped_calls = 0 THEN 'never overlapped'
        WHEN alone_calls = 0 THEN 'always overlapped'
        WHEN least(overlapped_calls, alone_calls) < 3 THEN 'too few calls'
        WHEN slowdown >= 1.05 AND spread_explained_percent >= 25 THEN 'slower beside collectives'
        WHEN slowdown <= 1 / 1.05 AND spread_explained_percent >= 25 THEN 'faster beside collectives'
        ELSE 'spread has other causes'
    END AS verdict,
    v1._short_name(name) AS short_name
FROM sums AS s
/* grain */ LEFT JOIN main.capture AS c ON c.capture_id = clock_id /* end grain */;

COMMENT ON VIEW v1.gemm_variance IS 'How much the time of each GEMM varies, and whether overlapping collectives explain it. Grain: capture × device × kernel name × input shapes.';
COMMENT ON COLUMN v1.gemm_variance.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN v1.gemm_variance.rank IS 'Rank of the capture; NULL if unknown. [-]';
COMMENT ON COLUMN v1.gemm_variance.device_id IS 'Device number within the capture. [-]';
COMMENT ON COLUMN v1.gemm_variance.labels IS 'Labels of the capture: sweep, threads, channels and others.';
COMMENT ON COLUMN v1.gemm_variance.name IS 'Kernel name as recorded.';
COMMENT ON COLUMN v1.gemm_variance.input_dims IS 'Input shapes of the launching operator, as JSON text as recorded; NULL if not recorded.';
COMMENT ON COLUMN v1.gemm_variance.batch IS 'Number of products in one call, by the shapes; NULL if unknown. [count]';
COMMENT ON COLUMN v1.gemm_variance.m IS 'Rows of the result. [-]';
COMMENT ON COLUMN v1.gemm_variance.n IS 'Columns of the result. [-]';
COMMENT ON COLUMN v1.gemm_variance.k IS 'Length of the sums. [-]';
COMMENT ON COLUMN v1.gemm_variance.calls IS 'Number of calls. [count]';
COMMENT ON COLUMN v1.gemm_variance.total_ns IS 'Sum of durations. [ns]';
COMMENT ON COLUMN v1.gemm_variance.excess_ns IS 'Sum of durations minus what it would be if every call took as little as the shortest: what the variation costs. [ns]';
COMMENT ON COLUMN v1.gemm_variance.mean_ns IS 'Mean duration. [ns]';
COMMENT ON COLUMN v1.gemm_variance.stddev_ns IS 'Sample standard deviation of durations, 0 for one call. [ns]';
COMMENT ON COLUMN v1.gemm_variance.cv_percent IS 'Coefficient of variation: standard deviation over mean. [percent]';
COMMENT ON COLUMN v1.gemm_variance.min_ns IS 'Shortest duration. [ns]';
COMMENT ON COLUMN v1.gemm_variance.max_ns IS 'Longest duration. [ns]';
COMMENT ON COLUMN v1.gemm_variance.spread_ns IS 'Longest minus shortest duration. [ns]';
COMMENT ON COLUMN v1.gemm_variance.p50_ns IS 'Median duration. [ns]';
COMMENT ON COLUMN v1.gemm_variance.p95_ns IS '95th percentile of durations, interpolated. [ns]';
COMMENT ON COLUMN v1.gemm_variance.p99_ns IS '99th percentile of durations, interpolated. [ns]';
COMMENT ON COLUMN v1.gemm_variance.start_of_min_ns IS 'Start of the shortest call (the earliest, if several), on the capture''s clock. [ns]';
COMMENT ON COLUMN v1.gemm_variance.start_of_max_ns IS 'Start of the longest call (the earliest, if several), on the capture''s clock. [ns]';
COMMENT ON COLUMN v1.gemm_variance.overlapped_calls IS 'Number of calls that overlap a collective on the same device. [count]';
COMMENT ON COLUMN v1.gemm_variance.alone_calls IS 'Number of the other calls. [count]';
COMMENT ON COLUMN v1.gemm_variance.overlapped_mean_ns IS 'Mean duration of overlapped calls; NULL if there are none. [ns]';
COMMENT ON COLUMN v1.gemm_variance.alone_mean_ns IS 'Mean duration of the other calls; NULL if there are none. [ns]';
COMMENT ON COLUMN v1.gemm_variance.slowdown IS 'Mean of overlapped calls divided by mean of the other calls; NULL unless both exist. [ratio]';
COMMENT ON COLUMN v1.gemm_variance.spread_explained_percent IS 'Share of the variance of durations (sum of squares) between overlapped calls and the other calls; NULL unless both exist and durations differ. [percent]';
COMMENT ON COLUMN v1.gemm_variance.verdict IS 'no collectives (none recorded), never overlapped, always overlapped, too few calls (fewer than 3 on one side), slower beside collectives or faster beside collectives (by 5 % and explaining 25 % of the spread), spread has other causes.';
COMMENT ON COLUMN v1.gemm_variance.short_name IS 'Kernel name without return type, namespaces, template arguments and parameters, like nsys''s shortName.';
