-- Peak rates of each device by element type. Grain: device name × element type of the arithmetic. For each source, the
-- row of main.device_peak with the lowest priority whose pattern is found in the name; TRY makes an invalid pattern
-- match nothing.
CREATE VIEW v1._device_peak AS
WITH device_name AS (
    SELECT DISTINCT d.name
    FROM main.device AS d
    WHERE d.name IS NOT NULL
),
rows_of_name AS (
    SELECT
        n.name, p.source, p.memory_gbps,
        p.fp64_tflops, p.fp32_tflops, p.tf32_tflops, p.fp16_tflops, p.bf16_tflops, p.fp8_tflops, p.int8_tflops
    FROM device_name AS n
    INNER JOIN main.device_peak AS p ON try(regexp_matches(n.name, p.device_name))
    QUALIFY row_number() OVER (PARTITION BY n.name, p.source ORDER BY p.priority, p.device_name, p.memory_gbps) = 1
),
rates AS (
    SELECT
        r.name, r.source, r.memory_gbps,
        unnest(['fp64', 'fp32', 'tf32', 'fp16', 'bf16', 'fp8', 'int8']) AS dtype,
        unnest([
            r.fp64_tflops, r.fp32_tflops, r.tf32_tflops, r.fp16_tflops, r.bf16_tflops, r.fp8_tflops, r.int8_tflops]) AS tflops
    FROM rows_of_name AS r
)
SELECT
    a.name, a.dtype,
    max(a.tflops) FILTER (a.source = 'data sheet') AS sheet_tflops,
    max(a.memory_gbps) FILTER (a.source = 'data sheet') AS sheet_gbps,
    max(a.tflops) FILTER (a.source = 'measured') AS measured_tflops,
    max(a.memory_gbps) FILTER (a.source = 'measured') AS measured_gbps
FROM rates AS a
GROUP BY a.name, a.dtype;
