-- By how many positions are the calls of a rank behind those of the rank with the most calls?
-- Grain: kernel of class collective, with the columns of v1._collective_place; v1._collective_match explains the rules.
-- has_fit is false for the rank with the most calls and where positions are counted within steps. shift is NULL there,
-- and where no rule decides. Conditions on fullest and is_by_step are repeated in the joins, because only those on a
-- single relation are applied before the join: all events of a group would be joined with each other otherwise.
CREATE VIEW v1._collective_shift AS
WITH events AS (
    SELECT e.*
    FROM v1._collective_place AS e
),
others AS (
    SELECT
        e.set_id, e.group_key, e.collective, e.size_key, e.member, e.fullest, count(*) AS calls,
        e.most_calls - count(*) AS missing
    FROM events AS e
    WHERE e.member <> e.fullest AND NOT e.is_by_step
    GROUP BY e.set_id, e.group_key, e.collective, e.size_key, e.member, e.fullest, e.most_calls
),
fits AS (
    SELECT
        h.set_id, h.group_key, h.collective, h.size_key, h.member, h.fullest, h.calls, h.missing,
        avg((n.common_start_ns < f.common_end_ns AND f.common_start_ns < n.common_end_ns)::INTEGER) AS front,
        avg((n.common_start_ns < b.common_end_ns AND b.common_start_ns < n.common_end_ns)::INTEGER) AS back
    FROM others AS h
    INNER JOIN events AS n
        ON n.set_id = h.set_id AND n.group_key = h.group_key AND n.collective = h.collective
        AND n.size_key = h.size_key AND n.member = h.member AND NOT n.is_sequenced
        AND n.member <> n.fullest AND NOT n.is_by_step
    INNER JOIN events AS f
        ON f.set_id = h.set_id AND f.group_key = h.group_key AND f.collective = h.collective
        AND f.size_key = h.size_key AND f.member = h.fullest AND f.place = n.place
        AND f.member = f.fullest AND f.members_here > 1 AND NOT f.is_by_step
    INNER JOIN events AS b
        ON b.set_id = h.set_id AND b.group_key = h.group_key AND b.collective = h.collective
        AND b.size_key = h.size_key AND b.member = h.fullest AND b.place = n.place + h.missing
        AND b.member = b.fullest AND b.members_here > 1 AND NOT b.is_by_step
    GROUP BY h.set_id, h.group_key, h.collective, h.size_key, h.member, h.fullest, h.calls, h.missing
),
shifts AS (
    SELECT
        h.set_id, h.group_key, h.collective, h.size_key, h.member,
        f.place - n.place AS shift,
        count(*) AS pairs,
        quantile_cont(n.from_end_to_end_ns - f.from_end_to_end_ns, [0.25, 0.75]) AS quartiles,
        quartiles[2] - quartiles[1] AS spread_ns,
        avg((n.common_start_ns < f.common_end_ns AND f.common_start_ns < n.common_end_ns)::INTEGER) AS together
    FROM fits AS h
    INNER JOIN events AS n
        ON n.set_id = h.set_id AND n.group_key = h.group_key AND n.collective = h.collective
        AND n.size_key = h.size_key AND n.member = h.member AND n.place <= 128
        AND n.member <> n.fullest AND NOT n.is_by_step
    INNER JOIN events AS f
        ON f.set_id = h.set_id AND f.group_key = h.group_key AND f.collective = h.collective
        AND f.size_key = h.size_key AND f.member = h.fullest AND f.place <= 128
        AND f.member = f.fullest AND f.members_here > 1 AND NOT f.is_by_step
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
)
SELECT e.*, p.shift, p.member IS NOT NULL AS has_fit
FROM events AS e
LEFT JOIN placed AS p USING (set_id, group_key, collective, size_key, member);
