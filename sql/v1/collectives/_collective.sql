-- One collective call, matched over the ranks of its group.
-- Grain: collective call. Bandwidths as defined by NVIDIA's nccl-tests (doc/PERFORMANCE.md there): algorithm bandwidth
-- is the message size divided by the time; bus bandwidth is that times 2(n-1)/n for an all-reduce, (n-1)/n for an
-- all-gather, reduce-scatter, all-to-all, gather and scatter, and 1 for a broadcast, reduce and send/receive, among n
-- ranks. For an all-to-all in which ranks send different sizes, the message is the largest rank's, and bus bandwidth
-- uses the bytes that the busiest sender sends to others (sent_bytes, from recorded split sizes); if these are unknown,
-- so are the bandwidths.
CREATE VIEW v1._collective AS
WITH calls AS (
    SELECT
        m.collective_id,
        any_value(m.match_rule) AS match_rule,
        any_value(m.set_id) AS set_id,
        any_value(m.source) AS source,
        any_value(m.labels) AS labels,
        max(m.step) AS step,
        max(m.step_index) AS step_index,
        any_value(m.collective) AS collective,
        min(m.recorded_as) AS recorded_as,
        min(m.dtype) AS dtype,
        any_value(m.message_bytes) AS message_bytes,
        any_value(m.sent_bytes) AS sent_bytes,
        bool_or(m.is_uneven) AS is_uneven,
        min(m.group_name) AS group_name,
        max(m.group_size) AS group_size,
        min(m.list_id) AS list_id,
        max(m.sequence) AS sequence,
        any_value(m.ranks) AS ranks,
        max(m.ranks_expected) AS ranks_expected,
        bool_and(m.is_by_rank) AS is_by_rank,
        any_value(m.latency_ns) AS latency_ns,
        map_from_entries(list((m.member, m.wait_ns) ORDER BY m.member)) AS waits,
        any_value(m.match_wait_ns) AS total_wait_ns,
        any_value(m.match_collective_ns) AS total_ns,
        min(m.start_ns) AS start_ns,
        max(m.end_ns) AS end_ns,
        max(m.start_ns) - min(m.start_ns) AS skew_start_ns,
        max(m.end_ns) - min(m.end_ns) AS skew_end_ns,
        any_value(m.last_member) AS last_member,
        any_value(m.clock_residual_ns) AS clock_residual_ns
    FROM v1._collective_member AS m
    GROUP BY m.collective_id
)
SELECT
    c.collective_id, c.match_rule, c.set_id, c.source, c.labels, s.cycle, c.step, c.step_index, c.collective, c.recorded_as,
    c.dtype, c.message_bytes, c.sent_bytes, c.is_uneven, c.group_name, c.group_size, l.group_ranks, c.sequence,
    c.ranks, c.ranks_expected, c.is_by_rank, c.latency_ns, c.total_ns,
    CASE WHEN c.ranks > 1 THEN c.waits END AS wait_ns,
    CASE WHEN c.ranks > 1 THEN c.total_wait_ns END AS total_wait_ns,
    c.start_ns, c.end_ns,
    CASE WHEN c.ranks > 1 THEN c.skew_start_ns END AS skew_start_ns,
    CASE WHEN c.ranks > 1 THEN c.skew_end_ns END AS skew_end_ns,
    c.last_member, c.clock_residual_ns,
    CASE WHEN c.collective <> 'alltoall' OR c.sent_bytes IS NOT NULL OR c.message_bytes IS NULL THEN
        c.message_bytes / nullif(c.latency_ns, 0)::DOUBLE
    END AS algorithm_gbps,
    CASE
        WHEN c.collective = 'alltoall' AND c.is_uneven THEN c.sent_bytes / nullif(c.message_bytes, 0)::DOUBLE
        WHEN c.collective = 'allreduce' THEN 2.0 * (c.ranks_expected - 1) / c.ranks_expected
        WHEN c.collective IN ('allgather', 'reduce_scatter', 'alltoall', 'gather', 'scatter')
            THEN 1.0 * (c.ranks_expected - 1) / c.ranks_expected
        WHEN c.collective IN ('broadcast', 'reduce', 'sendrecv') THEN 1.0
    END AS bus_factor
FROM calls AS c
LEFT JOIN v1._group_list AS l ON l.list_id = c.list_id
LEFT JOIN (SELECT set_id, any_value(cycle) AS cycle FROM v1._capture_set GROUP BY set_id) AS s ON s.set_id = c.set_id;
