-- Which times do recorded operators take at the shapes that were seen? The table `calls` of models fitted from traces.
-- Grain: for_capture × GPU × operator × input shapes × types × pass, over recorded_call: the rows of operator_calls by
-- capture, for each capture (for_capture) that they are to predict, or for none.
-- The time is the median over captures, which a slow GPU among several does not move. The interval should hold nine of
-- ten captures on another day: 1.645 standard deviations of the logarithm, estimated from the median deviation between
-- captures where there are five or more, else the larger of it and that of single calls by their quartiles; but at least 3 % and half a
-- microsecond, which runs of the same card differ by for reasons that one of them does not show.
WITH centred AS (
    SELECT
        r.*,
        median(r.time_ns) OVER (PARTITION BY r.for_capture, r.gpu, r.name, r.input_dims, r.input_types, r.dtype, r.pass) AS middle_ns
    FROM recorded_call AS r
),
sums AS (
    SELECT
        c.for_capture, c.gpu, c.name, c.input_dims, c.input_types, c.dtype, c.pass,
        max(c.sm_count) AS sm_count,
        sum(c.calls)::BIGINT AS calls,
        count(*) AS captures,
        any_value(c.middle_ns) AS time_ns,
        -- the median deviation of normal values is 0.6745 standard deviations, their quartiles are 1.349 apart
        CASE WHEN count(*) >= 3 THEN median(abs(ln(c.time_ns / c.middle_ns))) / 0.6745 END AS between_captures,
        CASE
            WHEN count(*) >= 5 THEN between_captures
            ELSE greatest(coalesce(between_captures, 0), median(c.spread_percent) / 100 / 1.349)
        END AS deviation,
        CASE WHEN min(c.flops) = max(c.flops) THEN min(c.flops) END AS flops,
        CASE WHEN min(c.bytes) = max(c.bytes) THEN min(c.bytes) END AS bytes,
        any_value(c.batch) AS batch, any_value(c.m) AS m, any_value(c.n) AS n, any_value(c.k) AS k
    FROM centred AS c
    GROUP BY ALL
),
widths AS (
    SELECT s.*, greatest(1.645 * s.deviation, ln(1.03 + 500 / s.time_ns)) AS width
    FROM sums AS s
)
SELECT
    w.gpu, w.name, w.input_dims, w.input_types, w.dtype, w.pass, w.sm_count, w.calls, w.captures,
    w.time_ns, w.time_ns * exp(-w.width) AS low_ns, w.time_ns * exp(w.width) AS high_ns,
    w.flops, w.bytes, w.batch, w.m, w.n, w.k, w.for_capture
FROM widths AS w
ORDER BY w.for_capture, w.gpu, w.name, w.pass, w.dtype NULLS LAST, w.input_dims, w.input_types NULLS LAST;
