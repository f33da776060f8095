-- The ends of collectives by capture, from which clocks are aligned.
-- In:  v1._collective_match.
-- Out: temp table clock_end(collective_id, set_id, capture_id, member, end_ns); end_ns is on the capture's own clock,
--      in Unix time if its zero is known.
CREATE OR REPLACE TEMP TABLE clock_end AS
SELECT
    e.collective_id,
    e.set_id,
    e.capture_id,
    min(e.member) AS member,
    max(e.end_ns + coalesce(e.clock_zero_unix_ns, 0)) AS end_ns
FROM v1._collective_match AS e
-- Only matches by order of calls, and only collectives that no rank can leave before all have entered.
WHERE e.match_rule IN ('sequence', 'order', 'order alone')
    AND e.collective IN ('allreduce', 'allgather', 'reduce_scatter', 'alltoall', 'barrier')
GROUP BY e.collective_id, e.set_id, e.capture_id;
