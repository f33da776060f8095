-- v1.matmul_fraction from counts of durations.
WITH classed AS (
    SELECT
        /* by p */
        CASE WHEN p.is_argued AND p.rule_source <> 'user' THEN 'collective' ELSE p.class /* matmul */ END AS class,
        p.calls,
        p.calls * p.duration_ns AS total_ns
    FROM part AS p
    UNION ALL
    SELECT /* by p */ 'matmul' AS class, 0 AS calls, 0 AS total_ns
    FROM part AS p
)
SELECT
    /* by c */
    c.class,
    sum(c.calls)::BIGINT AS calls,
    sum(c.total_ns)::BIGINT AS total_ns,
    100.0 * sum(c.total_ns) / nullif(sum(sum(c.total_ns)) OVER (/* partition */), 0) AS share_percent
FROM classed AS c
GROUP BY /* by c */ c.class
