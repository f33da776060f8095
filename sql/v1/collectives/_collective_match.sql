-- Which kernels of different ranks are one collective call?
-- Grain: kernel of class collective, with the columns of v1._collective_event (which is evaluated once, here). Kernels
-- of one call share a collective_id. The first rule that applies is used:
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
    FROM v1._collective_event AS e
),
numbered AS (
    SELECT
        e.capture_id, e.event_id, e.device_id, e.set_id, e.member, e.members, e.is_grouped, e.group_key, e.collective,
        e.size_key, e.sequence, e.marked_step AS step, e.group_size, e.ranks_expected, e.has_duplicate,
        e.start_ns + coalesce(e.clock_zero_unix_ns, 0) AS start_ns,
        e.end_ns + coalesce(e.clock_zero_unix_ns, 0) AS end_ns,
        e.is_grouped AND e.sequence IS NOT NULL AS is_sequenced,
        row_number() OVER (
            PARTITION BY e.set_id, e.member, e.group_key, e.collective, e.size_key, e.sequence
            ORDER BY e.start_ns, e.event_id, e.capture_id
        ) AS sequence_place,
        row_number() OVER (
            PARTITION BY e.set_id, e.member, e.group_key, e.collective, e.size_key, e.marked_step
            ORDER BY e.start_ns, e.event_id, e.capture_id
        ) AS step_place,
        row_number() OVER (
            PARTITION BY e.set_id, e.member, e.group_key, e.collective, e.size_key
            ORDER BY e.start_ns, e.event_id, e.capture_id
        ) AS place,
        e.end_ns - lag(e.end_ns) OVER (
            PARTITION BY e.set_id, e.member, e.group_key, e.collective, e.size_key
            ORDER BY e.start_ns, e.event_id, e.capture_id
        ) AS from_end_to_end_ns
    FROM events AS e
),
step_calls AS (
    SELECT set_id, group_key, collective, size_key, step, member, count(*) AS calls
    FROM numbered
    GROUP BY set_id, group_key, collective, size_key, step, member
),
step_kinds AS (
    SELECT
        set_id, group_key, collective, size_key, step,
        min(calls) = max(calls) AS agrees
    FROM step_calls
    GROUP BY set_id, group_key, collective, size_key, step
),
calls AS (
    SELECT set_id, group_key, collective, size_key, member, sum(calls)::BIGINT AS calls
    FROM step_calls
    GROUP BY set_id, group_key, collective, size_key, member
),
kinds AS (
    SELECT
        set_id, group_key, collective, size_key,
        count(*) AS members_here,
        max(calls) AS most_calls,
        min(calls) = max(calls) AS agrees,
        arg_min(member, (-calls, member)) AS fullest
    FROM calls
    GROUP BY set_id, group_key, collective, size_key
),
-- Whether the order within steps can be used: never if some calls are outside steps and their counts differ.
judged AS (
    SELECT
        k.set_id, k.group_key, k.collective, k.size_key, k.members_here, k.most_calls, k.agrees, k.fullest,
        bool_and(s.agrees) AND bool_or(s.step IS NOT NULL) AS is_by_step
    FROM kinds AS k
    INNER JOIN step_kinds AS s USING (set_id, group_key, collective, size_key)
    GROUP BY ALL
),
others AS (
    SELECT
        c.set_id, c.group_key, c.collective, c.size_key, c.member, j.fullest, c.calls, j.most_calls - c.calls AS missing
    FROM calls AS c
    INNER JOIN judged AS j USING (set_id, group_key, collective, size_key)
    WHERE c.member <> j.fullest AND NOT j.is_by_step
),
fits AS (
    SELECT
        h.set_id, h.group_key, h.collective, h.size_key, h.member, h.fullest, h.calls, h.missing,
        avg((n.start_ns < f.end_ns AND f.start_ns < n.end_ns)::INTEGER) AS front,
        avg((n.start_ns < b.end_ns AND b.start_ns < n.end_ns)::INTEGER) AS back
    FROM others AS h
    INNER JOIN numbered AS n
        ON n.set_id = h.set_id AND n.group_key = h.group_key AND n.collective = h.collective
        AND n.size_key = h.size_key AND n.member = h.member AND NOT n.is_sequenced
    INNER JOIN numbered AS f
        ON f.set_id = h.set_id AND f.group_key = h.group_key AND f.collective = h.collective
        AND f.size_key = h.size_key AND f.member = h.fullest AND f.place = n.place
    INNER JOIN numbered AS b
        ON b.set_id = h.set_id AND b.group_key = h.group_key AND b.collective = h.collective
        AND b.size_key = h.size_key AND b.member = h.fullest AND b.place = n.place + h.missing
    GROUP BY h.set_id, h.group_key, h.collective, h.size_key, h.member, h.fullest, h.calls, h.missing
),
shifts AS (
    SELECT
        h.set_id, h.group_key, h.collective, h.size_key, h.member,
        f.place - n.place AS shift,
        count(*) AS pairs,
        quantile_cont(n.from_end_to_end_ns - f.from_end_to_end_ns, [0.25, 0.75]) AS quartiles,
        quartiles[2] - quartiles[1] AS spread_ns,
        avg((n.start_ns < f.end_ns AND f.start_ns < n.end_ns)::INTEGER) AS together
    FROM fits AS h
    INNER JOIN numbered AS n
        ON n.set_id = h.set_id AND n.group_key = h.group_key AND n.collective = h.collective
        AND n.size_key = h.size_key AND n.member = h.member AND n.place <= 128
    INNER JOIN numbered AS f
        ON f.set_id = h.set_id AND f.group_key = h.group_key AND f.collective = h.collective
        AND f.size_key = h.size_key AND f.member = h.fullest AND f.place <= 128
    WHERE h.front < 0.5 AND h.back < 0.5
    GROUP BY h.set_id, h.group_key, h.collective, h.size_key, h.member, h.calls, shift
    HAVING pairs * 2 >= least(h.calls, 128)
),
found AS (
    SELECT
        set_id, group_key, collective, size_key, member,
        min(spread_ns, 2) FILTER (pairs >= 8) AS least_spreads,
        arg_min(shift, (spread_ns, abs(shift), shift)) FILTER (pairs >= 8) AS steady_shift,
        min(spread_ns) FILTER (pairs >= 8 AND shift = 0) AS first_spread_ns,
        arg_min(shift, (-together, abs(shift), shift)) FILTER (together >= 0.5) AS recorded_shift
    FROM shifts
    GROUP BY set_id, group_key, collective, size_key, member
),
-- By how many positions the calls of a rank are behind those of the rank with the most calls; NULL if unknown.
placed AS (
    SELECT
        h.set_id, h.group_key, h.collective, h.size_key, h.member,
        CASE
            WHEN greatest(h.front, h.back) >= 0.5 THEN CASE WHEN h.back > h.front THEN h.missing ELSE 0 END
            WHEN s.least_spreads[1] * 4 < s.least_spreads[2] THEN s.steady_shift
            WHEN s.recorded_shift IS NOT NULL THEN s.recorded_shift
            WHEN h.missing = 0 AND coalesce(s.first_spread_ns, 0) <= 200000 THEN 0
        END AS shift
    FROM fits AS h
    LEFT JOIN found AS s USING (set_id, group_key, collective, size_key, member)
),
ruled AS (
    SELECT
        n.capture_id, n.event_id, n.set_id, n.group_key, n.collective, n.size_key, n.group_size, n.ranks_expected,
        CASE
            WHEN n.has_duplicate THEN 'duplicate rank'
            WHEN n.collective = 'sendrecv' AND n.ranks_expected > 2 THEN 'unmatched'
            WHEN n.is_sequenced THEN 'sequence'
            WHEN NOT n.is_grouped AND (j.is_by_step OR j.agrees) AND j.members_here = n.members THEN 'order alone'
            WHEN NOT n.is_grouped THEN 'unmatched'
            WHEN h.member IS NULL OR h.shift IS NOT NULL THEN 'order'
            ELSE 'unmatched'
        END AS rule,
        CASE rule WHEN 'sequence' THEN n.sequence END AS sequence,
        CASE WHEN rule IN ('order', 'order alone') AND j.is_by_step THEN n.step END AS step,
        CASE
            WHEN rule = 'sequence' THEN n.sequence_place
            WHEN rule IN ('order', 'order alone') AND j.is_by_step THEN n.step_place
            WHEN rule IN ('order', 'order alone') THEN n.place + coalesce(h.shift, 0)
        END AS place
    FROM numbered AS n
    INNER JOIN judged AS j USING (set_id, group_key, collective, size_key)
    LEFT JOIN placed AS h USING (set_id, group_key, collective, size_key, member)
),
counted AS (
    SELECT
        capture_id, event_id, set_id, group_key, collective, size_key, rule, sequence, step, place,
        count(*) OVER (PARTITION BY set_id, group_key, collective, size_key, rule, sequence, step, place) AS ranks,
        group_size,
        ranks_expected
    FROM ruled
),
kept AS (
    SELECT
        capture_id, event_id, set_id, group_key, collective, size_key, rule, sequence, step, place,
        rule IN ('unmatched', 'duplicate rank') OR ranks > ranks_expected
            OR ranks = 1 AND group_size IS DISTINCT FROM 1 AS is_alone
    FROM counted
),
matches AS (
    SELECT
        capture_id,
        event_id,
        CASE WHEN is_alone AND rule <> 'duplicate rank' THEN 'unmatched' ELSE rule END AS match_rule,
        dense_rank() OVER (
            ORDER BY
                set_id, group_key, collective, size_key, rule, sequence, step, place,
                CASE WHEN is_alone THEN capture_id END, CASE WHEN is_alone THEN event_id END
        ) AS collective_id
    FROM kept
)
SELECT
    m.collective_id, m.match_rule,
    e.* EXCLUDE (members, has_duplicate, is_grouped, group_key, size_key, place_in_group, marked_step)
FROM matches AS m
INNER JOIN events AS e ON e.capture_id = m.capture_id AND e.event_id = m.event_id;
