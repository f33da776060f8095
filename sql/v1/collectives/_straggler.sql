-- Which rank is the straggler, that is, late to collectives?
-- Grain: set of captures × rank. Only calls matched over at least two ranks count. The waiting in a call is charged to
-- the rank that starts last. A rank is a straggler if it causes at least 75 % of the waiting in its calls, is last in
-- at least half of them, waiting is at least 10 % of the time that ranks spend in them, and chance does not explain it
-- (p_value < 0.01). So there is none if ranks take turns, if nobody waits, or if there are too few calls. p_value: the
-- probability that any rank is last this often if every rank of a call were equally likely to be last (binomial, times
-- the number of ranks, because it could be any of them).
-- straggler_member is the straggler of the set; if there are several in different groups, the one that causes the most
-- waiting.
CREATE VIEW v1._straggler AS
WITH parts AS (
    SELECT
        part.set_id,
        part.member,
        part.ranks,
        part.match_wait_ns,
        part.match_collective_ns,
        part.last_member IS NOT NULL AS is_known,
        coalesce(part.last_member = part.member, false) AS is_last
    FROM v1._collective_member AS part
    WHERE part.ranks > 1 /* filter part */
),
sums AS (
    SELECT
        set_id,
        member,
        count(*) AS calls,
        count(*) FILTER (is_known) AS known_calls,
        count(*) FILTER (is_last) AS times_last,
        max(ranks) AS ranks,
        avg(1.0 / ranks) FILTER (is_known) AS chance,
        coalesce(sum(match_wait_ns) FILTER (is_last), 0) AS wait_caused_ns,
        sum(match_wait_ns) AS all_wait_ns,
        sum(match_collective_ns) AS all_collective_ns
    FROM parts
    GROUP BY set_id, member
),
tests AS (
    SELECT
        s.*,
        CASE WHEN known_calls > 0
            THEN least(1.0, ranks * v1._binomial_tail(times_last, known_calls, chance))
        END AS p_value
    FROM sums AS s
),
judged AS (
    SELECT
        set_id, member, p_value, wait_caused_ns,
        wait_caused_ns >= 0.75 * all_wait_ns
            AND times_last >= 0.5 * calls
            AND all_wait_ns >= 0.1 * all_collective_ns
            AND coalesce(p_value < 0.01, false) AS is_straggler
    FROM tests
)
SELECT
    set_id, member, p_value, is_straggler,
    first_value(CASE WHEN is_straggler THEN member END) OVER (
        PARTITION BY set_id ORDER BY is_straggler DESC, wait_caused_ns DESC, member
    ) AS straggler_member,
    max(CASE WHEN is_straggler THEN wait_caused_ns END) OVER (PARTITION BY set_id) AS straggler_wait_ns
FROM judged;
