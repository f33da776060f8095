-- Which rank is late to its collectives, by how much, and how much waiting does that cause?
-- Grain: configuration × step × rank; step is NULL outside marked steps. Only calls matched over at least two ranks
-- count. The waiting in a call is charged to the rank that starts last. The straggler is determined over all selected
-- calls of a configuration: see v1._straggler.
CREATE VIEW v1.stragglers AS
SELECT
    /* by part */
    /* grain */
    any_value(part.source) AS source, any_value(part.labels) AS labels, any_value(y.cycle) AS cycle, part.step, part.member AS rank,
    /* end grain */
    count(*) AS calls,
    sum(part.start_ns - part.first_start_ns)::BIGINT AS late_ns,
    count(*) FILTER (part.is_last) AS times_last,
    -- If a row pools several ranks, it shows the straggler's share; a mean of the ranks' shares would mean nothing.
    CASE
        WHEN min(part.member) = max(part.member) THEN 100.0 * count(*) FILTER (part.is_last) / count(*)
        WHEN count(DISTINCT part.straggler_member) = 1 AND count(*) = count(part.straggler_member) THEN 100.0 * count(*) FILTER (part.is_last AND part.member = part.straggler_member)
            / nullif(count(*) FILTER (part.member = part.straggler_member), 0)
    END AS times_last_percent,
    coalesce(sum(part.margin_ns) FILTER (part.is_last), 0)::BIGINT AS margin_ns,
    coalesce(sum(part.match_wait_ns) FILTER (part.is_last), 0)::BIGINT AS wait_caused_ns,
    coalesce(sum(part.match_wait_ns // (part.ranks - 1)) FILTER (part.is_last), 0)::BIGINT AS others_wait_ns,
    CASE
        WHEN min(part.member) = max(part.member)
            THEN 100.0 * coalesce(sum(part.match_wait_ns) FILTER (part.is_last), 0) / nullif(sum(part.match_wait_ns), 0)
        WHEN count(DISTINCT part.straggler_member) = 1 AND count(*) = count(part.straggler_member) THEN 100.0 * coalesce(sum(part.match_wait_ns) FILTER (part.is_last AND part.member = part.straggler_member), 0)
            / nullif(sum(part.match_wait_ns) FILTER (part.member = part.straggler_member), 0)
    END AS wait_caused_percent,
    sum(part.duration_ns)::BIGINT AS collective_ns,
    sum(part.wait_ns)::BIGINT AS wait_ns,
    100.0 * sum(part.wait_ns) / nullif(sum(part.duration_ns), 0) AS wait_percent,
    count(*) FILTER (NOT part.is_known) AS undecided_calls,
    count(DISTINCT part.set_id) AS recordings,
    count(DISTINCT part.set_id) FILTER (part.is_straggler) AS straggler_recordings,
    CASE
        WHEN count(DISTINCT part.set_id) FILTER (part.is_straggler) IN (0, count(DISTINCT part.set_id)) THEN bool_or(part.is_straggler)
    END AS is_straggler,
    CASE
        WHEN count(DISTINCT part.straggler_member) = 1 AND count(*) = count(part.straggler_member) THEN max(part.straggler_member)
    END AS straggler_rank,
    CASE WHEN count(DISTINCT part.set_id) = 1 THEN min(part.p_value) END AS p_value,
    CASE WHEN count(DISTINCT part.set_id) = 1 THEN min(part.long_wait_p_value) END AS long_wait_p_value,
    CASE WHEN count(DISTINCT part.set_id) = 1 THEN min(part.step_p_value) END AS step_p_value
FROM v1._straggler AS part /* inline */
/* grain */
LEFT JOIN (SELECT set_id, any_value(cycle) AS cycle FROM v1._capture_set GROUP BY set_id) AS y ON y.set_id = part.set_id
/* end grain */
WHERE part.ranks > 1
GROUP BY /* by part */ /* grain */ part.set_id, part.step, part.member, /* end grain */ true;

COMMENT ON VIEW v1.stragglers IS 'Which rank is late to collectives, and how much waiting it causes. Grain: configuration × step × rank.';
COMMENT ON COLUMN v1.stragglers.source IS 'Profiler or format of the captures.';
COMMENT ON COLUMN v1.stragglers.labels IS 'Configuration: labels of the captures, without the rank.';
COMMENT ON COLUMN v1.stragglers.cycle IS 'Recording number, from 1 in time order, if the ranks recorded more than once; else NULL. [-]';
COMMENT ON COLUMN v1.stragglers.step IS 'Step number; NULL outside steps. [-]';
COMMENT ON COLUMN v1.stragglers.rank IS 'Rank; the device or a number if ranks are unknown. [-]';
COMMENT ON COLUMN v1.stragglers.calls IS 'Number of collective calls of the rank that are matched over ranks. [count]';
COMMENT ON COLUMN v1.stragglers.late_ns IS 'Sum over calls of its start minus the first start of all ranks; NULL if clocks cannot be compared. [ns]';
COMMENT ON COLUMN v1.stragglers.times_last IS 'Number of calls in which the rank starts last. [count]';
COMMENT ON COLUMN v1.stragglers.times_last_percent IS 'Share of its calls in which the rank starts last; in a row of several ranks (--by without rank) that of straggler_rank, NULL without one. [percent]';
COMMENT ON COLUMN v1.stragglers.margin_ns IS 'Sum over those calls of its start minus the start of the next-to-last rank. [ns]';
COMMENT ON COLUMN v1.stragglers.wait_caused_ns IS 'Waiting time, summed over all ranks, in the calls in which this rank starts last. [ns]';
COMMENT ON COLUMN v1.stragglers.others_wait_ns IS 'The same time per other rank: how long each of the others waits for this one, on average. [ns]';
COMMENT ON COLUMN v1.stragglers.wait_caused_percent IS 'Share of the waiting time in all its calls; in a row of several ranks (--by without rank) that of straggler_rank, NULL without one. [percent]';
COMMENT ON COLUMN v1.stragglers.collective_ns IS 'Time of the rank in collectives. [ns]';
COMMENT ON COLUMN v1.stragglers.wait_ns IS 'Part of that time spent waiting. [ns]';
COMMENT ON COLUMN v1.stragglers.wait_percent IS 'Share of its collective time spent waiting. [percent]';
COMMENT ON COLUMN v1.stragglers.undecided_calls IS 'Number of calls without a last rank: the last two start together, or closer than the clock residual. [count]';
COMMENT ON COLUMN v1.stragglers.recordings IS 'Number of recordings (configuration and cycle) in this row; 1 without --by. [count]';
COMMENT ON COLUMN v1.stragglers.straggler_recordings IS 'Number of those in which the rank (with --by without rank: any rank) is the straggler. [count]';
COMMENT ON COLUMN v1.stragglers.is_straggler IS 'Whether the rank is a straggler over the run: it is last more often, or causes more waiting, than chance explains (one of the three p-values is below 0.01), and the waiting it causes is large (at least 10 % of the collective time) and regular (more than half of the waiting in more than half of the steps). NULL if recordings in this row differ.';
COMMENT ON COLUMN v1.stragglers.straggler_rank IS 'Straggler of the configuration over the run; NULL if there is none, it is unknown, or recordings in this row differ. [-]';
COMMENT ON COLUMN v1.stragglers.p_value IS 'Probability that any rank is last this often over the run if all ranks of a call were equally likely to be last (binomial tail times the number of ranks; calls of one step, or ten in a row outside steps, count as fewer as far as they agree); NULL if no call has a last rank, or for several recordings. [probability]';
COMMENT ON COLUMN v1.stragglers.long_wait_p_value IS 'The same over the calls with at least a tenth of the mean waiting; NULL if there are none, or for several recordings. [probability]';
COMMENT ON COLUMN v1.stragglers.step_p_value IS 'Probability that the waiting which the rank causes in a step exceeds what the others cause by this much only by chance (t-test over steps, times the number of ranks); NULL with fewer than 3 marked steps, or for several recordings. [probability]';
