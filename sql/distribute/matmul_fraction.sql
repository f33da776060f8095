-- v1.matmul_fraction from counts of durations.
WITH classed AS (
    SELECT
        CASE WHEN p.is_argued AND p.rule_source <> 'user' THEN 'collective' ELSE p.class END AS class,
        p.calls,
        p.calls * p.duration_ns AS total_ns
    FROM part AS p
    UNION ALL
    SELECT 'matmul' AS class, 0 AS calls, 0 AS total_ns
    FROM part
)
SELECT
    c.class,
    sum(c.calls)::BIGINT AS calls,
    sum(c.total_ns)::BIGINT AS total_ns,
    100.0 * sum(c.total_ns) / nullif(sum(sum(c.total_ns)) OVER (), 0) AS share_percent
FROM classed AS c
GROUP BY c.class
