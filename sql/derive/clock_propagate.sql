-- Aligns the clocks of captures that are linked to an aligned one, through the link with the most calls and, among those,
-- the smallest residual.
-- In:  clock_link. In and out: temp table clock_found. Run by clock_alignment.py until it adds nothing.
INSERT INTO clock_found
WITH candidate AS (
    SELECT
        k.capture_id, f.reference_capture_id, k.calls, k.span_ns, k.from_capture_id,
        f.at_ns + round((k.at_ns - f.at_ns - f.offset_ns) / (1 + f.applied_drift))::BIGINT AS at_ns,
        k.at_ns - (f.at_ns + round((k.at_ns - f.at_ns - f.offset_ns) / (1 + f.applied_drift))::BIGINT) + k.offset_ns
            AS offset_ns,
        (1 + k.drift) * (1 + f.drift) - 1 AS drift,
        (1 + k.applied_drift) * (1 + f.applied_drift) - 1 AS applied_drift,
        greatest(k.residual_median_ns, f.residual_median_ns) AS residual_median_ns,
        greatest(k.residual_p99_ns, f.residual_p99_ns) AS residual_p99_ns,
        row_number() OVER (
            PARTITION BY k.capture_id ORDER BY k.calls DESC, k.residual_median_ns, k.from_capture_id
        ) AS place
    FROM clock_link AS k
    INNER JOIN clock_found AS f ON f.capture_id = k.from_capture_id
    WHERE NOT EXISTS (SELECT 1 FROM clock_found AS g WHERE g.capture_id = k.capture_id)
)

SELECT
    capture_id, reference_capture_id, at_ns, offset_ns, drift, applied_drift, calls, span_ns,
    residual_median_ns, residual_p99_ns
FROM candidate
WHERE place = 1;
