-- Estimates offset and drift between the clocks of pairs of captures, from collectives, which all ranks end together.
-- In:  temp table clock_end (clock_ends.sql, clock_messages.sql).
-- Out: temp table clock_link(from_capture_id, capture_id, set_id, place, at_ns, offset_ns, drift, applied_drift, calls,
--      span_ns, residual_median_ns, residual_p99_ns), in both directions: time of capture_id = time of from_capture_id
--      + offset_ns + drift * (time of from_capture_id - at_ns).
-- Method: the end of a collective on one rank minus its end on the lowest rank of the call is the difference of their
-- clocks plus some microseconds of noise, with outliers. The drift is the median of the slopes between all pairs of
-- calls (Theil-Sen; over 256 evenly spaced calls if there are more), the offset is the median of the remainder:
-- shifting and stretching a clock changes both by exactly that amount. Noise of 20 µs looks like a drift of 200 ppm
-- over 0.2 s, so the drift is applied only if it amounts to more than three times the median residual at the ends of
-- the span.
CREATE OR REPLACE TEMP TABLE clock_difference AS
WITH base AS (
    SELECT
        collective_id,
        arg_min(capture_id, (member, capture_id)) AS capture_id,
        arg_min(end_ns, (member, capture_id)) AS end_ns
    FROM clock_end
    GROUP BY collective_id
),

difference AS (
    SELECT
        b.capture_id AS from_capture_id, e.capture_id, e.set_id, e.collective_id,
        b.end_ns AS from_end_ns,
        e.end_ns - b.end_ns AS difference_ns
    FROM clock_end AS e
    INNER JOIN base AS b ON b.collective_id = e.collective_id AND b.capture_id <> e.capture_id
)

SELECT
    from_capture_id, capture_id, set_id, from_end_ns, difference_ns,
    min(difference_ns) OVER pair AS least_ns,
    min(from_end_ns) OVER pair AS first_ns,
    max(from_end_ns) OVER pair AS last_ns,
    count(*) OVER pair AS calls,
    row_number() OVER (
        PARTITION BY from_capture_id, capture_id ORDER BY from_end_ns, difference_ns, collective_id
    ) AS place
FROM difference
WINDOW pair AS (PARTITION BY from_capture_id, capture_id);

CREATE OR REPLACE TEMP TABLE clock_slope AS
WITH sampled AS (
    SELECT from_capture_id, capture_id, from_end_ns, difference_ns, place
    FROM clock_difference
    WHERE calls <= 256 OR place * 256 // calls <> (place - 1) * 256 // calls
)

SELECT
    a.from_capture_id, a.capture_id,
    median((b.difference_ns - a.difference_ns) / (b.from_end_ns - a.from_end_ns)) AS drift
FROM sampled AS a
INNER JOIN sampled AS b
    ON b.from_capture_id = a.from_capture_id AND b.capture_id = a.capture_id
    AND b.place > a.place AND b.from_end_ns > a.from_end_ns
GROUP BY a.from_capture_id, a.capture_id;

CREATE OR REPLACE TEMP TABLE clock_link AS
WITH line AS (
    SELECT
        d.from_capture_id, d.capture_id, d.set_id, d.difference_ns, d.least_ns, d.calls,
        d.last_ns - d.first_ns AS span_ns,
        d.first_ns + (d.last_ns - d.first_ns) // 2 AS at_ns,
        d.from_end_ns - at_ns AS from_middle_ns,
        CASE WHEN d.calls >= 8 THEN s.drift END AS drift
    FROM clock_difference AS d
    LEFT JOIN clock_slope AS s ON s.from_capture_id = d.from_capture_id AND s.capture_id = d.capture_id
),

fitted AS (
    SELECT
        from_capture_id, capture_id,
        median(difference_ns - least_ns - coalesce(drift, 0) * from_middle_ns) AS above_least_ns
    FROM line
    GROUP BY from_capture_id, capture_id
),

tested AS (
    SELECT
        n.from_capture_id, n.capture_id,
        coalesce(
            abs(any_value(n.drift)) * any_value(n.span_ns) / 2
            > 3 * median(abs(n.difference_ns - n.least_ns - f.above_least_ns - n.drift * n.from_middle_ns)), false
        ) AS uses_drift
    FROM line AS n
    INNER JOIN fitted AS f ON f.from_capture_id = n.from_capture_id AND f.capture_id = n.capture_id
    GROUP BY n.from_capture_id, n.capture_id
),

link AS (
    SELECT
        n.from_capture_id, n.capture_id,
        any_value(n.set_id) AS set_id,
        any_value(n.at_ns) AS at_ns,
        any_value(n.least_ns) + round(any_value(f.above_least_ns))::BIGINT AS offset_ns,
        any_value(n.drift) AS drift,
        any_value(CASE WHEN t.uses_drift THEN n.drift ELSE 0 END) AS applied_drift,
        any_value(n.calls) AS calls,
        any_value(n.span_ns) AS span_ns,
        quantile_cont(abs(
            n.difference_ns - n.least_ns - f.above_least_ns
            - CASE WHEN t.uses_drift THEN n.drift ELSE 0 END * n.from_middle_ns
        ), [0.5, 0.99]) AS residuals
    FROM line AS n
    INNER JOIN fitted AS f ON f.from_capture_id = n.from_capture_id AND f.capture_id = n.capture_id
    INNER JOIN tested AS t ON t.from_capture_id = n.from_capture_id AND t.capture_id = n.capture_id
    GROUP BY n.from_capture_id, n.capture_id
)

SELECT
    from_capture_id, capture_id, set_id, at_ns, offset_ns, drift, applied_drift, calls, span_ns,
    round(residuals[1])::BIGINT AS residual_median_ns,
    round(residuals[2])::BIGINT AS residual_p99_ns
FROM link
UNION ALL
SELECT
    capture_id AS from_capture_id, from_capture_id AS capture_id, set_id,
    at_ns + offset_ns AS at_ns, -offset_ns AS offset_ns,
    -drift / (1 + drift) AS drift, -applied_drift / (1 + applied_drift) AS applied_drift, calls, span_ns,
    round(residuals[1])::BIGINT AS residual_median_ns,
    round(residuals[2])::BIGINT AS residual_p99_ns
FROM link;

CREATE OR REPLACE TEMP TABLE clock_found AS
SELECT
    capture_id, capture_id AS reference_capture_id, at_ns, offset_ns, drift, applied_drift,
    calls, span_ns, residual_median_ns, residual_p99_ns
FROM clock_link
LIMIT 0;
