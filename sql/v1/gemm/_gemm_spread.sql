-- How much does the time of one GEMM spread on one GPU, by each setting of its run?
-- Grain: capture × device × kernel name × input shapes × factor, for class matmul with at least two calls; spread_ns is
-- that of v1.gemm_variance. A factor is a label with several values here, or the rank if there are several; its level
-- is the value in this run.
CREATE VIEW v1._gemm_spread AS
WITH gemms AS (
    SELECT
        e.capture_id AS clock_id,
        e.device_id AS gpu_id,
        e.op_id,
        e.name,
        e.duration_ns
    FROM v1._gpu_event AS e /* join e */
    WHERE e.kind = 'kernel' AND e.class = 'matmul' /* filter e */
),
spreads AS (
    SELECT g.clock_id, g.gpu_id, g.name, o.input_dims, max(g.duration_ns) - min(g.duration_ns) AS spread_ns
    FROM gemms AS g
    LEFT JOIN main.op AS o ON o.capture_id = g.clock_id AND o.op_id = g.op_id
    GROUP BY g.clock_id, g.gpu_id, g.name, o.input_dims
    HAVING count(*) > 1
),
sets AS (
    SELECT s.capture_id, s.set_id, s.labels
    FROM v1._capture_set AS s
),
settings AS (
    SELECT s.capture_id, s.set_id, unnest(map_entries(s.labels)) AS setting
    FROM sets AS s
    UNION ALL
    SELECT s.capture_id, s.set_id, {'key': 'rank', 'value': c.rank::VARCHAR} AS setting
    FROM sets AS s
    INNER JOIN main.capture AS c ON c.capture_id = s.capture_id
    WHERE c.rank IS NOT NULL
),
levels AS (
    SELECT g.clock_id, g.gpu_id, g.name, g.input_dims, g.spread_ns, t.set_id, t.setting.key AS factor, t.setting.value AS level
    FROM spreads AS g
    INNER JOIN settings AS t ON t.capture_id = g.clock_id
),
factors AS (
    SELECT factor
    FROM levels
    GROUP BY factor
    HAVING count(DISTINCT level) > 1
)
SELECT
    v.clock_id,
    v.gpu_id,
    v.name,
    v.input_dims,
    v.set_id,
    v.factor,
    v.level,
    dense_rank() OVER (
        PARTITION BY v.factor ORDER BY TRY_CAST(v.level AS DOUBLE) NULLS LAST, v.level
    ) AS level_place,
    v.spread_ns
FROM levels AS v
INNER JOIN factors AS f ON f.factor = v.factor;
