-- Makes the lowest rank whose clock is not aligned yet, of each configuration, a reference of its own.
-- In:  clock_link (clock_links.sql), clock_end (clock_ends.sql). In and out: temp table clock_found. Run repeatedly by
--      clock_alignment.py.
INSERT INTO clock_found
WITH waiting AS (
    SELECT k.set_id, k.capture_id, min(e.member) AS member, max(k.calls) AS calls, max(k.span_ns) AS span_ns,
        min(k.at_ns) AS at_ns
    FROM clock_link AS k
    INNER JOIN clock_end AS e ON e.capture_id = k.capture_id
    ANTI JOIN clock_found AS f ON f.capture_id = k.capture_id
    GROUP BY k.set_id, k.capture_id
)

SELECT
    arg_min(capture_id, (member, capture_id)) AS capture_id,
    arg_min(capture_id, (member, capture_id)) AS reference_capture_id,
    arg_min(at_ns, (member, capture_id)) AS at_ns,
    0 AS offset_ns,
    0.0 AS drift,
    0.0 AS applied_drift,
    arg_min(calls, (member, capture_id)) AS calls,
    arg_min(span_ns, (member, capture_id)) AS span_ns,
    0 AS residual_median_ns,
    0 AS residual_p99_ns
FROM waiting
GROUP BY set_id;
