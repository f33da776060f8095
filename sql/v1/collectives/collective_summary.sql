-- How long do collectives of one kind and size take in each configuration, and at what bandwidth?
-- Grain: configuration × collective × message size × element type × group size. Latency is the shortest duration over
-- the ranks of a call (see collectives). Calls present on only one rank are counted only in unmatched_calls, because
-- their waiting and transfer cannot be separated. Bandwidths are totals: all bytes divided by all latencies.
CREATE VIEW v1.collective_summary AS
WITH matches AS (
    SELECT
        /* by whole */
        whole.set_id, whole.source AS profiler, whole.labels, whole.cycle, whole.collective, whole.message_bytes, whole.dtype,
        whole.ranks_expected, whole.bus_factor, whole.algorithm_gbps AS call_gbps,
        whole.ranks > 1 OR whole.ranks_expected = 1 AND whole.match_rule <> 'unmatched' AS is_matched,
        whole.ranks, whole.latency_ns, whole.total_ns, whole.total_wait_ns, whole.skew_start_ns, whole.skew_end_ns
    FROM v1._collective AS whole
    WHERE true /* filter whole */
)
SELECT
    /* by */
    /* grain */ any_value(profiler) AS source, any_value(labels) AS labels, any_value(cycle) AS cycle, /* end grain */
    collective,
    message_bytes,
    dtype,
    ranks_expected AS group_size,
    count(*) FILTER (is_matched) AS calls,
    count(*) FILTER (NOT is_matched) AS unmatched_calls,
    min(ranks) FILTER (is_matched) AS min_ranks,
    sum(latency_ns) FILTER (is_matched) / nullif(count(*) FILTER (is_matched), 0) AS latency_mean_ns,
    median(latency_ns) FILTER (is_matched) AS latency_median_ns,
    min(latency_ns) FILTER (is_matched) AS latency_min_ns,
    max(latency_ns) FILTER (is_matched) AS latency_max_ns,
    (sum(latency_ns) FILTER (is_matched))::BIGINT AS latency_total_ns,
    (sum(total_wait_ns) FILTER (is_matched))::BIGINT AS total_wait_ns,
    100.0 * sum(total_wait_ns) FILTER (is_matched) / nullif(sum(total_ns) FILTER (is_matched), 0) AS wait_percent,
    median(skew_start_ns) FILTER (is_matched) AS skew_start_median_ns,
    (max(skew_start_ns) FILTER (is_matched))::BIGINT AS skew_start_max_ns,
    median(skew_end_ns) FILTER (is_matched) AS skew_end_median_ns,
    (max(skew_end_ns) FILTER (is_matched))::BIGINT AS skew_end_max_ns,
    CASE WHEN count(call_gbps) FILTER (is_matched) = count(nullif(latency_ns, 0)) FILTER (is_matched) THEN
        calls * message_bytes / nullif(latency_total_ns, 0)::DOUBLE
    END AS algorithm_gbps,
    algorithm_gbps * CASE
        WHEN min(bus_factor) = max(bus_factor) THEN min(bus_factor)
        ELSE avg(bus_factor) FILTER (is_matched)
    END AS bus_gbps
FROM matches
GROUP BY /* by */ /* grain */ set_id, /* end grain */ collective, message_bytes, dtype, ranks_expected;

COMMENT ON VIEW v1.collective_summary IS 'Latency, waiting, skew and bandwidth by collective and message size. Grain: configuration × collective × message size × element type × group size.';
COMMENT ON COLUMN v1.collective_summary.source IS 'Profiler or format of the captures.';
COMMENT ON COLUMN v1.collective_summary.labels IS 'Configuration: labels of the captures, without the rank.';
COMMENT ON COLUMN v1.collective_summary.cycle IS 'Recording number, from 1 in time order, if the ranks recorded more than once; else NULL. [-]';
COMMENT ON COLUMN v1.collective_summary.collective IS 'allreduce, allgather and others (see collectives).';
COMMENT ON COLUMN v1.collective_summary.message_bytes IS 'Message size; NULL if not recorded. [bytes]';
COMMENT ON COLUMN v1.collective_summary.dtype IS 'Element type.';
COMMENT ON COLUMN v1.collective_summary.group_size IS 'Number of ranks in the process group, or in the configuration if not recorded. [count]';
COMMENT ON COLUMN v1.collective_summary.calls IS 'Number of calls matched over ranks. [count]';
COMMENT ON COLUMN v1.collective_summary.unmatched_calls IS 'Number of kernels that were not matched with other ranks. [count]';
COMMENT ON COLUMN v1.collective_summary.min_ranks IS 'Smallest number of ranks in a matched call. [count]';
COMMENT ON COLUMN v1.collective_summary.latency_mean_ns IS 'Mean latency. [ns]';
COMMENT ON COLUMN v1.collective_summary.latency_median_ns IS 'Median latency. [ns]';
COMMENT ON COLUMN v1.collective_summary.latency_min_ns IS 'Shortest latency. [ns]';
COMMENT ON COLUMN v1.collective_summary.latency_max_ns IS 'Longest latency. [ns]';
COMMENT ON COLUMN v1.collective_summary.latency_total_ns IS 'Sum of latencies. [ns]';
COMMENT ON COLUMN v1.collective_summary.total_wait_ns IS 'Sum of waiting times over calls and ranks. [ns]';
COMMENT ON COLUMN v1.collective_summary.wait_percent IS 'Share of the ranks'' time in these collectives spent waiting. [percent]';
COMMENT ON COLUMN v1.collective_summary.skew_start_median_ns IS 'Median start skew (last start minus first start). [ns]';
COMMENT ON COLUMN v1.collective_summary.skew_start_max_ns IS 'Largest such skew. [ns]';
COMMENT ON COLUMN v1.collective_summary.skew_end_median_ns IS 'Median end skew (last end minus first end). [ns]';
COMMENT ON COLUMN v1.collective_summary.skew_end_max_ns IS 'Largest such skew. [ns]';
COMMENT ON COLUMN v1.collective_summary.algorithm_gbps IS 'All bytes / total latency (1e9 bytes per second); for an all-to-all with unequal sizes as in collectives. [GB/s]';
COMMENT ON COLUMN v1.collective_summary.bus_gbps IS 'Bus bandwidth: algorithm bandwidth times the nccl-tests factor; for an all-to-all with unequal sizes as in collectives. [GB/s]';
