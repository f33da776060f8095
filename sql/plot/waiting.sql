-- How long each rank waits for others in collectives, by step: the first 24 runs, with 100 steps and 256 ranks of each.
-- In:  answer: rows of v1.stragglers. {place}: order of configurations, without the rank.
WITH placed AS (
    SELECT
        a.*,
        dense_rank() OVER (ORDER BY {configuration}, a.source, a.cycle NULLS FIRST) AS panel,
        dense_rank() OVER (PARTITION BY a.labels, a.source, a.cycle ORDER BY a.step NULLS LAST) AS step_place,
        dense_rank() OVER (PARTITION BY a.labels, a.source, a.cycle ORDER BY a.rank NULLS LAST) AS rank_place
    FROM answer AS a
)
SELECT
    p.labels, p.source, p.cycle, p.panel, p.step, p.step_place, p.rank, p.rank_place,
    p.calls, p.wait_ns, p.wait_percent, p.wait_caused_ns, p.is_straggler,
    max(p.wait_ns) OVER () AS most_wait_ns,
    (sum(p.calls) OVER ())::BIGINT AS shown_calls,
    (SELECT count(*) FROM placed AS q WHERE q.panel > 24 OR q.step_place > 100 OR q.rank_place > 256) AS left_out
FROM placed AS p
WHERE p.panel <= 24 AND p.step_place <= 100 AND p.rank_place <= 256
ORDER BY p.panel, p.step_place, p.rank_place
