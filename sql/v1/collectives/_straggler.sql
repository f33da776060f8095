-- Which rank is the straggler, that is, late to collectives?
-- Grain: kernel of class collective, a rank's part in a call, with two judgements: of its own rank, and of the rank that
-- starts last in the call (late_member, if that one is the straggler). Both are over the whole recording and repeated in
-- each row, so that v1.stragglers and v1._why_part match collectives once. Only calls matched over at least two ranks
-- count. The waiting in a call is charged to the rank that starts last.
-- p_value is the evidence: the probability that any rank is last this often if every rank of a call were equally likely
-- to be last (binomial, times the number of ranks, because it could be any of them).
-- Calls of one step are not independent: a rank that begins a step late may be last in all of its calls. Clusters are
-- the steps, where at least two are marked, else ten consecutive calls of a group. As far as calls of one cluster agree
-- more than calls of different ones, they count as fewer calls: the number of calls is divided by the design effect,
-- 1 + (n - 1) r, with n calls in a cluster and r the intraclass correlation (one-way analysis of variance). A rank that
-- is last in all calls of one step and in half of those of another has little more evidence than those two steps.
-- long_wait_p_value is the same over the calls with at least a tenth of the mean waiting: a rank whose host sleeps once
-- a step is late to one call, and the others are noise. Both need many calls; a step with one or two large collectives has
-- few. step_p_value is the evidence of the amounts: by a t-test over at least three steps, the probability that the waiting
-- which the rank causes in a step, less what the others cause, is this far above zero by chance (times the number of
-- ranks). A rank is a straggler if
-- - one of the first two probabilities is below 0.01 and the rank is last in at least half of the calls concerned, or the
--   third one is below 0.01,
-- - its share of the waiting is at least halfway between an equal share and all of it,
-- - it is at least a tenth of the time that ranks spend in the calls, and
-- - it causes more than half of the waiting in more than half of the steps, if steps are marked.
-- The first call of a recording is left out of the waiting, because ranks do not start recording at the same time.
-- straggler_member is the straggler of the set; if there are several in different groups, the one that causes the most
-- waiting.
CREATE VIEW v1._straggler AS
WITH parts AS (
    SELECT
        part.set_id,
        part.member,
        part.step,
        part.capture_id,
        part.device_id,
        part.event_id,
        part.rank,
        part.source,
        part.labels,
        part.ranks,
        part.collective,
        part.message_bytes,
        part.is_uneven,
        part.latency_ns,
        part.first_start_ns,
        part.start_ns,
        part.duration_ns,
        part.wait_ns,
        part.match_wait_ns,
        part.match_collective_ns,
        part.margin_ns,
        part.last_member,
        part.last_member IS NOT NULL AS is_known,
        coalesce(part.last_member = part.member, false) AS is_last
    FROM v1._collective_member AS part
    WHERE true /* filter part */
),
placed_calls AS (
    SELECT
        p.*,
        coalesce(first_start_ns = min(first_start_ns) OVER (PARTITION BY set_id, member), false) AS is_first,
        row_number() OVER (PARTITION BY set_id, member ORDER BY first_start_ns, event_id, capture_id) AS place
    FROM parts AS p
    WHERE ranks > 1
),
judged_calls AS (
    SELECT
        p.*,
        (place - 1) // 10 AS block,
        is_known AND match_wait_ns >= 0.1 * coalesce(avg(match_wait_ns) FILTER (NOT is_first) OVER (PARTITION BY set_id, member), 0)
            AS is_long
    FROM placed_calls AS p
),
sums AS (
    SELECT
        set_id, member, step, block,
        max(ranks) AS ranks,
        count(*) AS calls,
        count(*) FILTER (is_known) AS known_calls,
        count(*) FILTER (is_last) AS times_last,
        sum(1.0 / ranks) FILTER (is_known) AS chances,
        count(*) FILTER (is_long) AS long_calls,
        count(*) FILTER (is_long AND is_last) AS long_times_last,
        sum(1.0 / ranks) FILTER (is_long) AS long_chances,
        coalesce(sum(match_wait_ns) FILTER (is_last), 0) AS wait_caused_ns,
        sum(match_wait_ns) AS all_wait_ns,
        coalesce(sum(match_wait_ns) FILTER (is_last AND NOT is_first), 0) AS later_wait_caused_ns,
        sum(match_wait_ns) FILTER (NOT is_first) AS later_wait_ns,
        sum(match_collective_ns) FILTER (NOT is_first) AS later_collective_ns
    FROM judged_calls
    GROUP BY set_id, member, step, block
),
cluster_sums AS (
    SELECT
        s.set_id, s.member,
        sum(s.known_calls) AS calls,
        sum(s.times_last) AS times_last,
        sum(s.long_calls) AS long_calls,
        sum(s.long_times_last) AS long_times_last
    FROM (
        SELECT
            s.*,
            CASE
                WHEN step IS NULL OR min(step) OVER (PARTITION BY set_id, member) = max(step) OVER (PARTITION BY set_id, member)
                    THEN block
            END AS own_block
        FROM sums AS s
    ) AS s
    GROUP BY s.set_id, s.member, s.step, s.own_block
),
design_effects AS (
    SELECT
        set_id, member,
        v1._design_effect(
            count(*) FILTER (calls > 0), sum(calls), sum(calls * calls), sum(times_last),
            sum(1000000 * times_last * times_last // nullif(calls, 0)) / 1e6
        ) AS effect,
        v1._design_effect(
            count(*) FILTER (long_calls > 0), sum(long_calls), sum(long_calls * long_calls), sum(long_times_last),
            sum(1000000 * long_times_last * long_times_last // nullif(long_calls, 0)) / 1e6
        ) AS long_effect
    FROM cluster_sums
    GROUP BY set_id, member
),
step_sums AS (
    SELECT
        set_id, member, step,
        max(ranks) AS ranks,
        sum(calls) AS calls,
        sum(known_calls) AS known_calls,
        sum(times_last) AS times_last,
        sum(chances) AS chances,
        sum(long_calls) AS long_calls,
        sum(long_times_last) AS long_times_last,
        sum(long_chances) AS long_chances,
        sum(later_wait_caused_ns) AS wait_caused_ns,
        sum(later_wait_ns) AS all_wait_ns,
        -- with the first call: if it is beyond the usual waiting, it widens the spread and the test is careful
        sum(wait_caused_ns) AS whole_wait_caused_ns,
        sum(all_wait_ns) AS whole_wait_ns,
        sum(later_collective_ns) AS all_collective_ns
    FROM sums
    GROUP BY set_id, member, step
),
worst AS (
    SELECT
        s.*,
        step IS NOT NULL AND wait_caused_ns > 0.5 * all_wait_ns AS is_worst,
        CASE WHEN step IS NOT NULL THEN (2 * whole_wait_caused_ns - whole_wait_ns)::BIGINT END AS excess_ns
    FROM step_sums AS s
),
rank_sums AS (
    SELECT
        set_id,
        member,
        max(ranks) AS ranks,
        count(step) AS steps,
        count(*) FILTER (is_worst) AS worst_steps,
        count(excess_ns) AS judged_steps,
        sum(excess_ns)::BIGINT AS excess_ns,
        v1._sample_stddev(count(excess_ns), sum(excess_ns)::BIGINT, sum(excess_ns::HUGEINT * excess_ns)) AS excess_stddev_ns,
        sum(calls) AS calls,
        sum(known_calls)::BIGINT AS known_calls,
        sum(times_last)::BIGINT AS times_last,
        sum(chances) / nullif(sum(known_calls), 0) AS chance,
        sum(long_calls)::BIGINT AS long_calls,
        sum(long_times_last)::BIGINT AS long_times_last,
        sum(long_chances) / nullif(sum(long_calls), 0) AS long_chance,
        sum(wait_caused_ns) AS wait_caused_ns,
        sum(all_wait_ns) AS all_wait_ns,
        sum(all_collective_ns) AS all_collective_ns
    FROM worst
    GROUP BY set_id, member
),
tests AS (
    SELECT
        s.*,
        CASE WHEN known_calls > 0
            THEN least(1.0, ranks * v1._clustered_tail(times_last, known_calls, chance, effect))
        END AS p_value,
        CASE WHEN long_calls > 0
            THEN least(1.0, ranks * v1._clustered_tail(long_times_last, long_calls, long_chance, long_effect))
        END AS long_wait_p_value,
        CASE WHEN judged_steps >= 3 THEN
            CASE
                WHEN excess_ns <= 0 THEN 1.0
                -- a spread of 0, as of made recordings, is no certainty
                ELSE least(1.0, ranks * v1._student_tail(
                    excess_ns / greatest(excess_stddev_ns, 1e-6 * excess_ns) / sqrt(judged_steps), judged_steps - 1
                ))
            END
        END AS step_p_value
    FROM rank_sums AS s
    INNER JOIN design_effects AS d ON d.set_id = s.set_id AND d.member = s.member
),
judged AS (
    SELECT
        set_id, member, p_value, long_wait_p_value, step_p_value, wait_caused_ns,
        coalesce(
            (p_value < 0.01 AND times_last >= 0.5 * calls
                OR long_wait_p_value < 0.01 AND long_times_last >= 0.5 * long_calls
                OR step_p_value < 0.01)
            AND wait_caused_ns >= 0.5 * (1 + 1.0 / ranks) * all_wait_ns
            AND wait_caused_ns >= 0.1 * all_collective_ns
            AND (steps = 0 OR worst_steps > 0.5 * steps), false
        ) AS is_straggler
    FROM tests
),
named AS (
    SELECT
        set_id, member, p_value, long_wait_p_value, step_p_value, is_straggler,
        first_value(CASE WHEN is_straggler THEN member END) OVER (
            PARTITION BY set_id ORDER BY is_straggler DESC, wait_caused_ns DESC, member
        ) AS straggler_member
    FROM judged
)
SELECT
    p.set_id, p.member, p.step, p.capture_id, p.device_id, p.event_id, p.rank, p.source, p.labels, p.ranks,
    p.collective, p.message_bytes, p.is_uneven, p.latency_ns,
    p.first_start_ns, p.start_ns, p.duration_ns, p.wait_ns, p.match_wait_ns, p.margin_ns, p.is_known, p.is_last,
    n.p_value, n.long_wait_p_value, n.step_p_value, n.is_straggler, n.straggler_member,
    CASE WHEN l.is_straggler AND l.member = l.straggler_member THEN l.member END AS late_member,
    least(l.p_value, l.long_wait_p_value, l.step_p_value) AS late_p_value
FROM parts AS p
LEFT JOIN named AS n ON n.set_id = p.set_id AND n.member = p.member
LEFT JOIN named AS l ON l.set_id = p.set_id AND l.member = p.last_member;
