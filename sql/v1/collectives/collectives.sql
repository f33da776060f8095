-- How long did each collective call take over the ranks of its group: how much waiting, how much transfer?
-- Grain: collective call. A rank's kernel runs from its own start until the last rank has arrived and the transfer is
-- done, so the shortest duration is taken as the transfer, and the remainder on every other rank as waiting, as in
-- TraceLens. match_rule says how kernels were matched (see v1._collective_match); v1._collective_member describes the
-- clocks.
CREATE VIEW v1.collectives AS
SELECT
    /* by whole */
    whole.collective_id, whole.source, whole.labels, whole.cycle, whole.step, whole.collective, whole.recorded_as,
    whole.message_bytes, whole.sent_bytes, whole.dtype, whole.group_name,
    whole.group_size, whole.group_ranks, whole.sequence, whole.match_rule, whole.ranks, whole.latency_ns,
    whole.wait_ns, whole.total_wait_ns,
    whole.start_ns, whole.end_ns, whole.skew_start_ns, whole.skew_end_ns, whole.last_member AS last_rank,
    whole.clock_residual_ns,
    whole.algorithm_gbps,
    whole.algorithm_gbps * whole.bus_factor AS bus_gbps
FROM v1._collective AS whole
WHERE true /* filter whole */;

COMMENT ON VIEW v1.collectives IS 'Collective calls matched over ranks: transfer time, waiting time, skew and bandwidth. Grain: collective call.';
COMMENT ON COLUMN v1.collectives.collective_id IS 'Number of the call in this file; may change when more captures are loaded. [-]';
COMMENT ON COLUMN v1.collectives.source IS 'Profiler or format of the captures.';
COMMENT ON COLUMN v1.collectives.labels IS 'Configuration: labels of the captures, without the rank.';
COMMENT ON COLUMN v1.collectives.cycle IS 'Recording number, from 1 in time order, if the ranks recorded more than once; else NULL. [-]';
COMMENT ON COLUMN v1.collectives.step IS 'Step number of the launch; NULL outside steps. [-]';
COMMENT ON COLUMN v1.collectives.collective IS 'allreduce, allgather, reduce_scatter, alltoall, broadcast, reduce, gather, scatter, sendrecv, barrier, or other.';
COMMENT ON COLUMN v1.collectives.recorded_as IS 'Name of the collective as recorded with the kernels; NULL if not recorded.';
COMMENT ON COLUMN v1.collectives.message_bytes IS 'Message size: the output of an all-gather, the input of other collectives; the maximum over ranks; NULL if not recorded. [bytes]';
COMMENT ON COLUMN v1.collectives.sent_bytes IS 'For an all-to-all, bytes that the busiest sender sends to other ranks; NULL if sizes differ between ranks and split sizes were not recorded. [bytes]';
COMMENT ON COLUMN v1.collectives.dtype IS 'Element type as recorded, else from the kernel name.';
COMMENT ON COLUMN v1.collectives.group_name IS 'Process group; NULL if not recorded.';
COMMENT ON COLUMN v1.collectives.group_size IS 'Number of ranks in the process group; NULL if not recorded. [count]';
COMMENT ON COLUMN v1.collectives.group_ranks IS 'Ranks of the process group, as JSON text as recorded.';
COMMENT ON COLUMN v1.collectives.sequence IS 'Sequence number in the group; NULL if not recorded. [-]';
COMMENT ON COLUMN v1.collectives.match_rule IS 'How ranks were matched: sequence, order (within group, collective and size), order alone (groups not recorded), unmatched, duplicate rank.';
COMMENT ON COLUMN v1.collectives.ranks IS 'Number of ranks matched; if lower than group_size, some ranks are missing from the captures. [count]';
COMMENT ON COLUMN v1.collectives.latency_ns IS 'Shortest duration over ranks: the transfer time, if all ranks are present. [ns]';
COMMENT ON COLUMN v1.collectives.wait_ns IS 'Map from rank to its waiting time (its duration minus the shortest); by device or number if ranks are unknown; NULL for a single rank. [ns]';
COMMENT ON COLUMN v1.collectives.total_wait_ns IS 'Sum of waiting times over ranks; NULL for a single rank. [ns]';
COMMENT ON COLUMN v1.collectives.start_ns IS 'First start over ranks on the common clock (Unix time if known); NULL if clocks cannot be compared. [ns]';
COMMENT ON COLUMN v1.collectives.end_ns IS 'Last end over ranks on the common clock. [ns]';
COMMENT ON COLUMN v1.collectives.skew_start_ns IS 'Last start minus first start over ranks; NULL for a single rank and if clocks cannot be compared. [ns]';
COMMENT ON COLUMN v1.collectives.skew_end_ns IS 'Last end minus first end over ranks; NULL in the same cases as skew_start_ns. [ns]';
COMMENT ON COLUMN v1.collectives.last_rank IS 'Rank that starts last and makes the others wait; NULL if the last two start together or closer than the clock residual. [-]';
COMMENT ON COLUMN v1.collectives.clock_residual_ns IS 'Median clock residual after alignment, maximum over ranks; NULL if clocks are not aligned. [ns]';
COMMENT ON COLUMN v1.collectives.algorithm_gbps IS 'Message size / latency (1e9 bytes per second). For an all-to-all with unequal sizes, the largest rank''s message counts; NULL if split sizes were not recorded. [GB/s]';
COMMENT ON COLUMN v1.collectives.bus_gbps IS 'Bus bandwidth: algorithm bandwidth times the nccl-tests factor for this collective and number of ranks; for an all-to-all with unequal sizes, sent_bytes / latency. [GB/s]';
