-- Says in a sentence for each side what became of a step, and which part of its time changed most.
-- In:  temp tables answer, side_test (answer.sql), side_fact (facts.sql).
-- Out: temp table side_gist(side, said).
CREATE OR REPLACE TEMP TABLE side_gist AS
WITH parts AS (
    SELECT
        a.side_number, a.name, a.base_mean_ns / 1e6 AS base_ms, a.mean_ns / 1e6 AS ms, a.difference_mean_ns / 1e6 AS change_ms,
        CASE WHEN a.difference_mean_ns > 0 THEN '+' ELSE '' END AS sign, a.ratio, a.verdict, a.side
    FROM answer AS a
    WHERE a.kind = 'timeline' AND a.difference_mean_ns IS NOT NULL
),

causes AS (
    SELECT
        p.side_number, arg_max(p.name, abs(p.change_ms)) AS name, arg_max(p.base_ms, abs(p.change_ms)) AS base_ms,
        arg_max(p.ms, abs(p.change_ms)) AS ms
    FROM (FROM parts ORDER BY name) AS p
    WHERE p.name NOT IN ('total', 'busy')
    GROUP BY p.side_number
)

SELECT
    p.side_number AS side,
    format('{}: a {} takes {:.1f} → {:.1f} ms ({}{:.1f} %), {}; most of the change is in {}, {:.1f} → {:.1f} ms', p.side,
        CASE WHEN f.by_step THEN 'step' ELSE 'recording' END, p.base_ms, p.ms, p.sign, 100 * (p.ratio - 1),
        CASE
            WHEN p.verdict LIKE 'too few%' THEN p.verdict || ' to tell'
            ELSE p.verdict || CASE t.tested_over
                WHEN 'runs' THEN format(' (over {:d} and {:d} runs)', t.base_runs, t.runs) ELSE ' (over steps of one run each)' END
        END,
        c.name, c.base_ms, c.ms) AS said
FROM parts AS p
INNER JOIN causes AS c ON c.side_number = p.side_number
INNER JOIN side_test AS t ON t.other = p.side_number
INNER JOIN side_fact AS f ON f.side = p.side_number
WHERE p.name = 'total' AND p.ratio IS NOT NULL;
