-- Which kernels of different ranks are one collective call?
-- Grain: kernel of class collective, with the columns of v1._collective_event, evaluated once in this chain. Kernels
-- of one call share a collective_id: calls are numbered within each kind (group, collective and size), and the numbers
-- of the kinds follow each other, so that no step sorts the calls of all groups. The first rule that applies is used:
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
WITH ruled AS (
    SELECT
        n.*,
        CASE
            WHEN n.has_duplicate THEN 'duplicate rank'
            WHEN n.collective = 'sendrecv' AND n.ranks_expected > 2 THEN 'unmatched'
            WHEN n.is_sequenced THEN 'sequence'
            WHEN NOT n.is_grouped AND (n.is_by_step OR n.agrees) AND n.members_here = n.members THEN 'order alone'
            WHEN NOT n.is_grouped THEN 'unmatched'
            WHEN NOT n.has_fit OR n.shift IS NOT NULL THEN 'order'
            ELSE 'unmatched'
        END AS rule,
        CASE
            WHEN rule = 'sequence' THEN n.sequence
            WHEN rule IN ('order', 'order alone') AND n.is_by_step THEN n.marked_step
        END AS rule_number,
        CASE
            WHEN rule = 'sequence' THEN n.sequence_place
            WHEN rule IN ('order', 'order alone') AND n.is_by_step THEN n.step_place
            WHEN rule IN ('order', 'order alone') THEN n.place + coalesce(n.shift, 0)
        END AS rule_place
    FROM v1._collective_shift AS n
),
counted AS (
    SELECT
        r.* EXCLUDE (
            members, has_duplicate, is_grouped, marked_step, common_start_ns, common_end_ns, is_sequenced,
            sequence_place, step_place, place, from_end_to_end_ns, members_here, most_calls, calls_here, agrees, fullest,
            is_by_step, shift, has_fit
        ),
        count(*) OVER (PARTITION BY kind_no, rule, rule_number, rule_place) AS ranks
    FROM ruled AS r
),
kept AS (
    SELECT
        c.*,
        rule IN ('unmatched', 'duplicate rank') OR ranks > ranks_expected
            OR ranks = 1 AND group_size IS DISTINCT FROM 1 AS is_alone
    FROM counted AS c
),
numbered AS (
    SELECT
        k.*,
        dense_rank() OVER (
            PARTITION BY kind_no
            ORDER BY
                rule, rule_number, rule_place,
                CASE WHEN is_alone THEN capture_id END, CASE WHEN is_alone THEN event_id END
        ) AS call
    FROM kept AS k
),
kinds AS (
    SELECT
        kind_no,
        coalesce(sum(max(call)) OVER (ORDER BY kind_no ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0)::BIGINT
            AS calls_before
    FROM numbered
    GROUP BY kind_no
)
SELECT
    g.calls_before + n.call AS collective_id,
    CASE WHEN n.is_alone AND n.rule <> 'duplicate rank' THEN 'unmatched' ELSE n.rule END AS match_rule,
    n.* EXCLUDE (kind_no, rule, rule_number, rule_place, ranks, is_alone, call)
FROM numbered AS n
INNER JOIN kinds AS g ON g.kind_no = n.kind_no;
