-- Latency and bandwidth of collectives by message size, up to 2,000 points. Calls of unrecorded size and unmatched
-- calls have none.
-- In:  answer: rows of v1.collective_summary. {place}: order of configurations.
WITH sized AS (
    SELECT a.*
    FROM answer AS a
    WHERE a.message_bytes > 0 AND a.calls > 0 AND a.latency_median_ns > 0
)
SELECT
    s.*,
    sum(s.calls) OVER () AS all_calls,
    greatest(count(*) OVER () - 2000, 0) AS left_out,
    (SELECT sum(a.calls) FROM answer AS a) - sum(s.calls) OVER () AS unsized_calls,
    (SELECT sum(a.unmatched_calls) FROM answer AS a) AS unmatched
FROM sized AS s
QUALIFY row_number() OVER (ORDER BY s.calls DESC, s.message_bytes, s.collective) <= 2000
ORDER BY {place}, s.collective, s.message_bytes
