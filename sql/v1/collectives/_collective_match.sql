-- Which kernels of different ranks are one collective call?
-- Grain: kernel of class collective, with the columns of v1._collective_event, evaluated once in this chain. Kernels
-- of one call share a collective_id: calls are numbered within each group, and the numbers of the groups follow each
-- other, so that no step sorts the calls of all groups. The first rule that applies is used:
-- sequence: equal process group (name and ranks) and recorded sequence number.
-- order: the same position by start among kernels of equal group, collective and size. Positions are counted within
-- marked steps if all ranks that have a step have equally many in it, so ranks that recorded different steps still
-- match.
-- Otherwise positions are counted over the whole capture, aligned at the first call or (for a rank with fewer calls) at
-- the last call of the rank with the most calls, whichever makes at least half of the rank's calls overlap theirs in
-- time. If neither does, the recording may have started at another iteration, or its clock may be off. All ranks end a
-- call together, so at the right shift the intervals between ends agree: the shift is chosen at which they agree four
-- times better than at any other (interquartile range, over at least 8 calls and half of all). If that does not decide,
-- the shift is used at which half of the calls overlap as recorded; else the first position, if there are equally many
-- calls and the intervals agree to 0.2 ms.
-- order alone: groups were not recorded; the same position among kernels of equal name, if every rank of the
-- configuration has equally many of them.
-- unmatched: no rule applies, or there is nothing to match with, or there are more ranks than in the group, or it is a
-- send or receive among more than two ranks. duplicate rank: a rank occurs twice in the configuration, so nothing is
-- matched.
CREATE VIEW v1._collective_match AS
WITH events AS (
    SELECT e.*
    FROM v1._collective_shift AS e
),
ruled AS (
    SELECT
        n.capture_id, n.event_id, n.set_id, n.group_key, n.collective, n.size_key, n.group_size, n.ranks_expected,
        CASE
            WHEN n.has_duplicate THEN 'duplicate rank'
            WHEN n.collective = 'sendrecv' AND n.ranks_expected > 2 THEN 'unmatched'
            WHEN n.is_sequenced THEN 'sequence'
            WHEN NOT n.is_grouped AND (n.is_by_step OR n.agrees) AND n.members_here = n.members THEN 'order alone'
            WHEN NOT n.is_grouped THEN 'unmatched'
            WHEN NOT n.has_fit OR n.shift IS NOT NULL THEN 'order'
            ELSE 'unmatched'
        END AS rule,
        CASE rule WHEN 'sequence' THEN n.sequence END AS rule_sequence,
        CASE WHEN rule IN ('order', 'order alone') AND n.is_by_step THEN n.marked_step END AS rule_step,
        CASE
            WHEN rule = 'sequence' THEN n.sequence_place
            WHEN rule IN ('order', 'order alone') AND n.is_by_step THEN n.step_place
            WHEN rule IN ('order', 'order alone') THEN n.place + coalesce(n.shift, 0)
        END AS rule_place
    FROM events AS n
),
counted AS (
    SELECT r.*, count(*) OVER (PARTITION BY set_id, group_key, collective, size_key, rule, rule_sequence, rule_step, rule_place) AS ranks
    FROM ruled AS r
),
kept AS (
    SELECT
        c.*,
        rule IN ('unmatched', 'duplicate rank') OR ranks > ranks_expected
            OR ranks = 1 AND group_size IS DISTINCT FROM 1 AS is_alone
    FROM counted AS c
),
matches AS (
    SELECT
        capture_id, event_id, set_id, group_key,
        CASE WHEN is_alone AND rule <> 'duplicate rank' THEN 'unmatched' ELSE rule END AS match_rule,
        dense_rank() OVER (
            PARTITION BY set_id, group_key
            ORDER BY
                collective, size_key, rule, rule_sequence, rule_step, rule_place,
                CASE WHEN is_alone THEN capture_id END, CASE WHEN is_alone THEN event_id END
        ) AS call
    FROM kept
),
groups AS (
    SELECT
        set_id, group_key,
        coalesce(sum(max(call)) OVER (
            ORDER BY set_id, group_key ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ), 0)::BIGINT AS calls_before
    FROM matches
    GROUP BY set_id, group_key
)
SELECT
    g.calls_before + m.call AS collective_id,
    m.match_rule,
    e.* EXCLUDE (
        members, has_duplicate, is_grouped, group_key, size_key, marked_step, common_start_ns,
        common_end_ns, is_sequenced, sequence_place, step_place, place, from_end_to_end_ns, members_here,
        most_calls, agrees, fullest, is_by_step, shift, has_fit
    )
FROM matches AS m
INNER JOIN groups AS g ON g.set_id = m.set_id AND g.group_key = m.group_key
INNER JOIN events AS e ON e.capture_id = m.capture_id AND e.event_id = m.event_id;
