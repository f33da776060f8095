-- By how many positions are the calls of a rank behind those of the rank with the most calls?
-- Grain: kernel of class collective, with the columns of v1._collective_place; v1._collective_match explains the rules.
-- has_fit is false for the rank with the most calls and where positions are counted within steps. shift is NULL there,
-- and where no rule decides. The kernels of the rank with the most calls are chosen before the joins: all events of a
-- group would be joined with each other otherwise.
CREATE VIEW v1._collective_shift AS
WITH events AS (
    SELECT e.*
    FROM v1._collective_place AS e
),
fullest AS (
    SELECT e.kind_no, e.place, e.common_start_ns, e.common_end_ns, e.from_end_to_end_ns
    FROM events AS e
    WHERE e.member = e.fullest AND e.members_here > 1 AND NOT e.is_by_step
),
others AS (
    SELECT
        e.kind_no, e.member, e.place, e.common_start_ns, e.common_end_ns, e.from_end_to_end_ns, e.is_sequenced,
        e.calls_here, e.most_calls - e.calls_here AS missing
    FROM events AS e
    WHERE e.member <> e.fullest AND NOT e.is_by_step
),
fits AS (
    SELECT
        n.kind_no, n.member, n.calls_here AS calls, n.missing,
        avg((n.common_start_ns < f.common_end_ns AND f.common_start_ns < n.common_end_ns)::INTEGER) AS front,
        avg((n.common_start_ns < b.common_end_ns AND b.common_start_ns < n.common_end_ns)::INTEGER) AS back
    FROM others AS n
    INNER JOIN fullest AS f ON f.kind_no = n.kind_no AND f.place = n.place
    INNER JOIN fullest AS b ON b.kind_no = n.kind_no AND b.place = n.place + n.missing
    WHERE NOT n.is_sequenced
    GROUP BY n.kind_no, n.member, n.calls_here, n.missing
),
shifts AS (
    SELECT
        h.kind_no, h.member,
        f.place - n.place AS shift,
        count(*) AS pairs,
        quantile_cont(n.from_end_to_end_ns - f.from_end_to_end_ns, [0.25, 0.75]) AS quartiles,
        quartiles[2] - quartiles[1] AS spread_ns,
        avg((n.common_start_ns < f.common_end_ns AND f.common_start_ns < n.common_end_ns)::INTEGER) AS together
    FROM fits AS h
    INNER JOIN others AS n ON n.kind_no = h.kind_no AND n.member = h.member AND n.place <= 128
    INNER JOIN fullest AS f ON f.kind_no = h.kind_no AND f.place <= 128
    WHERE h.front < 0.5 AND h.back < 0.5
    GROUP BY h.kind_no, h.member, h.calls, shift
    HAVING pairs * 2 >= least(h.calls, 128)
),
found AS (
    SELECT
        kind_no, member,
        min(spread_ns, 2) FILTER (pairs >= 8) AS least_spreads,
        arg_min(shift, (spread_ns, abs(shift), shift)) FILTER (pairs >= 8) AS steady_shift,
        min(spread_ns) FILTER (pairs >= 8 AND shift = 0) AS first_spread_ns,
        arg_min(shift, (-together, abs(shift), shift)) FILTER (together >= 0.5) AS recorded_shift
    FROM shifts
    GROUP BY kind_no, member
),
fitted AS (
    SELECT
        h.kind_no, h.member,
        CASE
            WHEN greatest(h.front, h.back) >= 0.5 THEN CASE WHEN h.back > h.front THEN h.missing ELSE 0 END
            WHEN s.least_spreads[1] * 4 < s.least_spreads[2] THEN s.steady_shift
            WHEN s.recorded_shift IS NOT NULL THEN s.recorded_shift
            WHEN h.missing = 0 AND coalesce(s.first_spread_ns, 0) <= 200000 THEN 0
        END AS shift
    FROM fits AS h
    LEFT JOIN found AS s ON s.kind_no = h.kind_no AND s.member = h.member
)
SELECT e.*, p.shift, p.member IS NOT NULL AS has_fit
FROM events AS e
LEFT JOIN fitted AS p ON p.kind_no = e.kind_no AND p.member = e.member;
