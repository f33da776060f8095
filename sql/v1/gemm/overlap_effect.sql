-- Do overlapping collectives slow a GEMM?
-- Grain: kernel name × input shapes, class matmul; with --by also by configuration. A call is overlapped if a
-- collective on its device starts before it ends and ends after it starts (see gemm_variance). The two kinds of calls
-- are compared by mean, by median and by rank: the two-sided Mann-Whitney test (v1._mann_whitney_p). Twice the mean
-- rank of ties is an integer, so sums are exact for every row order. With fewer than 8 calls on either side the normal
-- approximation does not hold, and p_value is NULL.
CREATE VIEW v1.overlap_effect AS
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
calls AS (
    SELECT
        /* by */
        g.name,
        o.input_dims,
        g.duration_ns,
        coalesce(s.reach_ns > g.start_ns, false) AS is_overlapped
    FROM gemms AS g
    LEFT JOIN main.op AS o ON o.capture_id = g.clock_id AND o.op_id = g.op_id
    ASOF LEFT JOIN v1._collective_span AS s
        ON s.capture_id = g.clock_id AND v1._asof_key(s.device_id) = v1._asof_key(g.gpu_id) AND s.start_ns < g.end_ns
),
ranked AS (
    SELECT
        /* by */
        name,
        input_dims,
        duration_ns,
        is_overlapped,
        rank() OVER (PARTITION BY /* by */ name, input_dims ORDER BY duration_ns) AS first_place,
        count(*) OVER (PARTITION BY /* by */ name, input_dims, duration_ns) AS ties
    FROM calls
),
sums AS (
    SELECT
        /* by */
        name,
        input_dims,
        count(*) AS calls,
        sum(duration_ns) AS total_ns,
        count(*) FILTER (is_overlapped) AS overlapped_calls,
        count(*) FILTER (NOT is_overlapped) AS alone_calls,
        sum(duration_ns) FILTER (is_overlapped) / count(*) FILTER (is_overlapped) AS overlapped_mean_ns,
        sum(duration_ns) FILTER (NOT is_overlapped) / count(*) FILTER (NOT is_overlapped) AS alone_mean_ns,
        median(duration_ns) FILTER (is_overlapped) AS overlapped_median_ns,
        median(duration_ns) FILTER (NOT is_overlapped) AS alone_median_ns,
        (sum(2 * first_place + ties - 1) FILTER (is_overlapped))::HUGEINT AS twice_ranks,
        sum(ties::HUGEINT * ties - 1) AS tie_cubes
    FROM ranked
    GROUP BY /* by */ name, input_dims
),
-- In how many pairs of an overlapped call and a call alone is the overlapped one slower?
tests AS (
    SELECT
        /* by */
        name, input_dims, calls, total_ns, overlapped_calls, alone_calls,
        overlapped_mean_ns, alone_mean_ns, overlapped_median_ns, alone_median_ns, tie_cubes,
        v1._mann_whitney_u(overlapped_calls, twice_ranks) AS slower_pairs,
        overlapped_calls::DOUBLE * alone_calls AS pairs
    FROM sums
)
SELECT
    /* by */
    name,
    input_dims,
    calls,
    total_ns::BIGINT AS total_ns,
    overlapped_calls,
    alone_calls,
    overlapped_mean_ns,
    alone_mean_ns,
    overlapped_median_ns,
    alone_median_ns,
    overlapped_mean_ns / nullif(alone_mean_ns, 0) AS slowdown,
    overlapped_median_ns / nullif(alone_median_ns, 0) AS median_slowdown,
    100 * slower_pairs / nullif(pairs, 0) AS slower_pairs_percent,
    CASE WHEN overlapped_calls >= 8 AND alone_calls >= 8
        THEN v1._mann_whitney_p(slower_pairs, overlapped_calls, alone_calls, tie_cubes)
    END AS p_value,
    v1._short_name(name) AS short_name
FROM tests;

COMMENT ON VIEW v1.overlap_effect IS 'Whether overlapping collectives slow a GEMM: calls that overlap a collective against calls that do not. Grain: kernel name × input shapes.';
COMMENT ON COLUMN v1.overlap_effect.name IS 'Kernel name as recorded.';
COMMENT ON COLUMN v1.overlap_effect.input_dims IS 'Input shapes of the launching operator, as JSON text as recorded; NULL if not recorded.';
COMMENT ON COLUMN v1.overlap_effect.calls IS 'Number of calls. [count]';
COMMENT ON COLUMN v1.overlap_effect.total_ns IS 'Sum of durations. [ns]';
COMMENT ON COLUMN v1.overlap_effect.overlapped_calls IS 'Number of calls that overlap a collective on the same device. [count]';
COMMENT ON COLUMN v1.overlap_effect.alone_calls IS 'Number of the other calls. [count]';
COMMENT ON COLUMN v1.overlap_effect.overlapped_mean_ns IS 'Mean duration of overlapped calls; NULL if there are none. [ns]';
COMMENT ON COLUMN v1.overlap_effect.alone_mean_ns IS 'Mean duration of the other calls; NULL if there are none. [ns]';
COMMENT ON COLUMN v1.overlap_effect.overlapped_median_ns IS 'Median duration of overlapped calls; NULL if there are none. [ns]';
COMMENT ON COLUMN v1.overlap_effect.alone_median_ns IS 'Median duration of the other calls; NULL if there are none. [ns]';
COMMENT ON COLUMN v1.overlap_effect.slowdown IS 'Mean of overlapped calls divided by mean of the other calls; NULL unless both exist. [ratio]';
COMMENT ON COLUMN v1.overlap_effect.median_slowdown IS 'Median of overlapped calls divided by median of the other calls; NULL unless both exist. [ratio]';
COMMENT ON COLUMN v1.overlap_effect.slower_pairs_percent IS 'Share of all pairs (one overlapped call, one call alone) in which the overlapped call is slower; ties count half, so 50 means no difference. [percent]';
COMMENT ON COLUMN v1.overlap_effect.p_value IS 'Two-sided p-value of the Mann-Whitney test, corrected for ties and continuity; NULL with fewer than 8 calls on either side. [probability]';
COMMENT ON COLUMN v1.overlap_effect.short_name IS 'Kernel name without return type, namespaces, template arguments and parameters, like nsys''s shortName.';
