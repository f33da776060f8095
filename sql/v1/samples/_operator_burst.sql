-- What does a call of an operator cost when it is repeated alone: in energy, and in the host's time?
-- Grain: burst of main.operator_burst, with its GPU. energy_j is what a call draws beyond a device that only spins.
CREATE VIEW v1._operator_burst AS
SELECT
    b.capture_id, d.gpu, b.operator, b.pass, b.dtype, b.shape,
    b.spin_ns IS NOT NULL AS is_diluted,
    (b.duration_ns - coalesce(b.spin_ns, 0)) / b.calls AS call_ns,
    (b.power_w - b.spin_power_w) * (b.duration_ns / 1e9) / b.calls AS energy_j,
    b.power_w * (b.duration_ns / 1e9) / b.calls AS whole_energy_j,
    b.sm_clock_mhz, b.spin_power_w, b.power_limit_w, b.sm_clock_limit_mhz,
    b.host_ns, b.is_synchronous
FROM main.operator_burst AS b
LEFT JOIN (
    SELECT v.capture_id, min(v.name) AS gpu FROM main.device AS v GROUP BY v.capture_id
) AS d ON d.capture_id = b.capture_id;
COMMENT ON VIEW v1._operator_burst IS 'Bursts of operators repeated alone, with their GPU. Grain: burst.';
