-- Rate against intensity of operators whose FLOPs and bytes are known, up to 2,000 points, those with most time first; and
-- the roof of their device and type: from low_intensity over the ridge to high_intensity.
-- In:  answer: rows of v1.roofline. {place}: order of configurations.
WITH unknown AS (
    SELECT
        a.name,
        sum(a.gpu_ns) AS gpu_ns,
        sum(a.gpu_ns) FILTER (a.bound = 'memory') AS memory_ns
    FROM answer AS a
    WHERE coalesce(a.tflops > 0 AND a.intensity > 0, false) = false
    GROUP BY a.name
),
known AS (
    SELECT a.*
    FROM answer AS a
    WHERE a.tflops > 0 AND a.intensity > 0
),
ends AS (
    SELECT
        k.*,
        k.peak_tflops * 1e3 / nullif(k.peak_gbps, 0) AS ridge_intensity,
        least(min(k.intensity) OVER () / 2, min(k.peak_tflops * 1e3 / nullif(k.peak_gbps, 0)) OVER () / 4) AS low_intensity,
        greatest(max(k.intensity) OVER () * 2, max(k.peak_tflops * 1e3 / nullif(k.peak_gbps, 0)) OVER () * 4) AS high_intensity
    FROM known AS k
)
SELECT
    e.*,
    e.low_intensity * e.peak_gbps / 1e3 AS low_tflops,
    e.gpu_ns / 1e6 AS gpu_ms,
    100.0 * sum(e.gpu_ns) OVER () / nullif((SELECT sum(a.gpu_ns) FROM answer AS a), 0) AS shown_percent,
    (SELECT max_by(u.name, (u.gpu_ns, u.name)) FROM unknown AS u) AS largest_left,
    100.0 * (SELECT max(u.gpu_ns) FROM unknown AS u) / nullif((SELECT sum(a.gpu_ns) FROM answer AS a), 0)
        AS largest_left_percent,
    (SELECT sum(u.memory_ns) FROM unknown AS u) / 1e6 AS memory_alone_ms,
    greatest(count(*) OVER () - 2000, 0) AS left_out
FROM ends AS e
QUALIFY row_number() OVER (ORDER BY e.gpu_ns DESC, e.name, e.input_dims) <= 2000
ORDER BY {place}, e.gpu_ns DESC, e.name, e.input_dims
