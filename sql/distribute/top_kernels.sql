-- v1.top_kernels from counts of durations: the median of counted values is exact.
WITH counted AS (
    SELECT
        /* by p */
        p.name,
        max(p.class) AS class,
        max(p.rule_source) AS rule_source,
        max(p.short_name) AS short_name,
        p.is_argued,
        p.duration_ns,
        sum(p.calls)::BIGINT AS calls
    FROM part AS p
    GROUP BY /* by p */ p.name, p.is_argued, p.duration_ns
),
mixed AS (
    SELECT c.name
    FROM counted AS c
    GROUP BY c.name
    HAVING count(DISTINCT c.is_argued) = 2
),
kept AS (
    SELECT
        /* by c */
        c.name, c.class, c.rule_source, c.short_name, c.duration_ns,
        CASE
            WHEN m.name IS NOT NULL AND (c.class = 'collective' OR c.rule_source = 'user') THEN 'pooled'
            WHEN c.is_argued THEN 'argued'
            ELSE 'plain'
        END AS calls_taken,
        sum(c.calls)::BIGINT AS calls
    FROM counted AS c
    LEFT JOIN mixed AS m ON m.name = c.name
    GROUP BY /* by c */ c.name, c.class, c.rule_source, c.short_name, c.duration_ns, calls_taken
),
placed AS (
    SELECT
        x.*,
        sum(x.calls) OVER same AS all_calls,
        sum(x.calls) OVER (PARTITION BY /* by x */ x.name, x.calls_taken ORDER BY x.duration_ns) AS reach
    FROM kept AS x
    WINDOW same AS (PARTITION BY /* by x */ x.name, x.calls_taken)
),
sums AS (
    SELECT
        /* by p */
        p.name, p.calls_taken,
        max(p.class) AS class,
        max(p.rule_source) AS rule_source,
        max(p.short_name) AS short_name,
        sum(p.calls)::BIGINT AS calls,
        sum(p.calls * p.duration_ns) AS total_ns,
        sum(p.calls::HUGEINT * p.duration_ns * p.duration_ns) AS squares,
        (min(p.duration_ns) FILTER (p.reach >= (p.all_calls + 1) // 2)
            + min(p.duration_ns) FILTER (p.reach >= p.all_calls // 2 + 1)) / 2 AS median_ns,
        min(p.duration_ns) AS min_ns,
        max(p.duration_ns) AS max_ns
    FROM placed AS p
    GROUP BY /* by p */ p.name, p.calls_taken
)
SELECT
    /* by s */
    s.name,
    CASE WHEN s.calls_taken = 'argued' AND s.rule_source <> 'user' THEN 'collective' ELSE s.class END AS class,
    s.calls,
    s.total_ns::BIGINT AS total_ns,
    100.0 * s.total_ns / nullif(sum(s.total_ns) OVER (/* partition */), 0) AS share_percent,
    s.total_ns / s.calls AS avg_ns,
    s.median_ns,
    s.min_ns,
    s.max_ns,
    v1._sample_stddev(s.calls, s.total_ns, s.squares) AS stddev_ns,
    s.short_name
FROM sums AS s
