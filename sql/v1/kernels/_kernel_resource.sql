-- Which registers and how much scratch memory has a kernel of an AMD device, by its name and vector registers?
-- Grain: capture × name × registers_per_thread. NULL where kernels that agree in these were built in several ways.
CREATE VIEW v1._kernel_resource AS
SELECT
    r.capture_id,
    r.name,
    r.registers_per_thread,
    CASE WHEN count(DISTINCT coalesce(r.accum_registers_per_thread, -1)) = 1
        THEN min(r.accum_registers_per_thread) END AS accum_registers_per_thread,
    CASE WHEN count(DISTINCT coalesce(r.scalar_registers_per_wave, -1)) = 1
        THEN min(r.scalar_registers_per_wave) END AS scalar_registers_per_wave,
    CASE WHEN count(DISTINCT coalesce(r.scratch_bytes_per_thread, -1)) = 1
        THEN min(r.scratch_bytes_per_thread) END AS scratch_bytes_per_thread
FROM main.kernel_resource AS r
GROUP BY r.capture_id, r.name, r.registers_per_thread;
