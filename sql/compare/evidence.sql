-- Says what the verdicts of a comparison are about, and what they leave open.
-- In:  temp tables side_test (answer.sql), side_name, side_remark (likeness.sql).
-- Out: temp table side_evidence(place, note): a line for each number of runs or way to test.
CREATE OR REPLACE TEMP TABLE side_evidence AS
SELECT
    min(t.other) AS place,
    CASE
        WHEN t.tested_over = 'steps' THEN 'verdicts are over steps, of one run a side: they say nothing about other runs'
        WHEN t.runs < 4 OR t.base_runs < 4 THEN format(
            'too few runs to tell a difference from noise: {:d} of the baseline, {:d} of {}; each side needs 4',
            t.base_runs, t.runs, string_agg(n.name, ', ' ORDER BY t.other))
        ELSE format('verdicts are over means of runs: {:d} of the baseline, {:d} of {}',
            t.base_runs, t.runs, string_agg(n.name, ', ' ORDER BY t.other))
    END AS note
FROM side_test AS t
INNER JOIN side_name AS n ON n.side = t.other
ANTI JOIN (SELECT side FROM side_remark WHERE is_incomparable) AS r ON r.side = t.other
GROUP BY t.tested_over, t.runs, t.base_runs;
