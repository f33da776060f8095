-- How are the spreads of GEMM times distributed for each setting?
-- Grain: factor × level × point. Spreads range over decades and down to 0, so the density is per unit of ln(1 + spread
-- / 1 µs), linear below 1 µs and logarithmic above. Gaussian kernel, width by Silverman's rule, at least 0.05. The 80
-- points of a level are equidistant on that scale, from its smallest spread to its largest: a density beyond them would
-- show spreads that were not measured. A level with one value gets points within a tenth of a width of it.
CREATE VIEW v1.gemm_spread_density AS
WITH places AS (
    SELECT g.factor, g.level, g.level_place, ln(1 + g.spread_ns / 1000) AS u
    FROM v1._gemm_spread AS g /* inline */
),
widths AS (
    SELECT
        factor,
        level,
        level_place,
        count(*) AS gemms,
        min(u) AS least_u,
        max(u) AS most_u,
        (quantile_cont(u, 0.75) - quantile_cont(u, 0.25)) / 1.34 AS box,
        coalesce(stddev_samp(u ORDER BY u), 0) AS deviation,
        greatest(0.9 * CASE WHEN box > 0 THEN least(box, deviation) ELSE deviation END * count(*) ** -0.2, 0.05) AS width
    FROM places
    GROUP BY factor, level, level_place
),
points AS (
    SELECT
        factor,
        level,
        unnest(range(0, 80)) AS point,
        least_u - CASE WHEN most_u = least_u THEN least(0.1 * width, least_u) ELSE 0 END AS from_u,
        most_u + CASE WHEN most_u = least_u THEN 0.1 * width ELSE 0 END AS to_u
    FROM widths
),
densities AS (
    SELECT
        w.factor,
        w.level,
        any_value(w.level_place) AS level_place,
        any_value(w.gemms) AS gemms,
        p.point + 1 AS point,
        any_value(1000 * (exp(p.from_u + (p.to_u - p.from_u) * p.point / 79) - 1)) AS spread,
        sum(exp(-0.5 * ((p.from_u + (p.to_u - p.from_u) * p.point / 79 - u.u) / w.width) ** 2) ORDER BY u.u)
            / any_value(w.gemms * w.width * sqrt(2 * pi())) AS density
    FROM widths AS w
    INNER JOIN points AS p ON p.factor = w.factor AND p.level = w.level
    INNER JOIN places AS u ON u.factor = w.factor AND u.level = w.level
    GROUP BY w.factor, w.level, p.point
)
SELECT
    factor,
    level,
    level_place,
    gemms,
    point,
    round(spread)::BIGINT AS spread_ns,
    density,
    density / max(density) OVER (PARTITION BY factor) AS relative_density
FROM densities;

COMMENT ON VIEW v1.gemm_spread_density IS 'Density of the spread of GEMM times for each setting. Grain: factor (label with several values, or rank) × level × point.';
COMMENT ON COLUMN v1.gemm_spread_density.factor IS 'Label with several values, or rank.';
COMMENT ON COLUMN v1.gemm_spread_density.level IS 'Its value.';
COMMENT ON COLUMN v1.gemm_spread_density.level_place IS 'Position of the value among the values of the factor, from 1; numbers are ordered numerically. [-]';
COMMENT ON COLUMN v1.gemm_spread_density.gemms IS 'Number of GEMMs (kernel with its input shapes, per GPU and capture) with two or more calls. [count]';
COMMENT ON COLUMN v1.gemm_spread_density.point IS 'Index of the point, from 1 (the smallest spread of the level) to 80 (its largest). [-]';
COMMENT ON COLUMN v1.gemm_spread_density.spread_ns IS 'Spread (longest minus shortest call of a GEMM) at the point. [ns]';
COMMENT ON COLUMN v1.gemm_spread_density.density IS 'Density at the point, per unit of ln(1 + spread / 1 µs). [-]';
COMMENT ON COLUMN v1.gemm_spread_density.relative_density IS 'Density divided by the highest density of the factor, from 0 to 1. [ratio]';
