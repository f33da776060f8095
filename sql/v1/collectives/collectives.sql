-- How long did each collective call take over the ranks of its group: how much of it waiting, how much transfer?
-- Grain: collective call. The kernel of a rank that comes early runs until the last one has come, so the shortest
-- duration is taken as the transfer, and the rest of each other rank's as waiting; after TraceLens. How kernels were
-- matched is said by match_rule (see v1._collective_match), clocks by v1._collective_member.
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

COMMENT ON VIEW v1.collectives IS 'Collective calls matched over ranks: waiting and transfer apart, skew, bandwidth. Grain: collective call.';
COMMENT ON COLUMN v1.collectives.collective_id IS 'Number of the call in this file; may change when more is loaded. [-]';
COMMENT ON COLUMN v1.collectives.source IS 'Which ingester read the captures.';
COMMENT ON COLUMN v1.collectives.labels IS 'Configuration: labels of the captures less the rank.';
COMMENT ON COLUMN v1.collectives.cycle IS 'Which recording of its ranks, from 1 in the order of time, where ranks recorded more than once; else NULL. [-]';
COMMENT ON COLUMN v1.collectives.step IS 'Step number of its launch; NULL outside steps. [-]';
COMMENT ON COLUMN v1.collectives.collective IS 'Which collective: allreduce, allgather, reduce_scatter, alltoall, broadcast, reduce, gather, scatter, sendrecv, barrier, or other.';
COMMENT ON COLUMN v1.collectives.recorded_as IS 'The collective as recorded with the kernels; NULL if not recorded.';
COMMENT ON COLUMN v1.collectives.message_bytes IS 'Size of the whole message: what an all-gather gives, what goes into the others; the largest of the ranks; NULL if not recorded. [bytes]';
COMMENT ON COLUMN v1.collectives.sent_bytes IS 'Of an all-to-all, what the rank sends to others that sends most; NULL where sizes differ between ranks and split sizes were not recorded. [bytes]';
COMMENT ON COLUMN v1.collectives.dtype IS 'Element type as recorded, else as the kernel name says.';
COMMENT ON COLUMN v1.collectives.group_name IS 'Process group; NULL if not recorded.';
COMMENT ON COLUMN v1.collectives.group_size IS 'Ranks in the process group as recorded; NULL if not recorded. [count]';
COMMENT ON COLUMN v1.collectives.group_ranks IS 'Ranks of the process group, JSON text as recorded.';
COMMENT ON COLUMN v1.collectives.sequence IS 'Sequence number in the group; NULL if not recorded. [-]';
COMMENT ON COLUMN v1.collectives.match_rule IS 'How ranks were matched: sequence, order (within group, collective and size), order alone (groups not recorded), unmatched, duplicate rank.';
COMMENT ON COLUMN v1.collectives.ranks IS 'Number of ranks matched; below group_size some are missing from the captures. [count]';
COMMENT ON COLUMN v1.collectives.latency_ns IS 'Shortest duration over ranks: the transfer, where all ranks are there. [ns]';
COMMENT ON COLUMN v1.collectives.wait_ns IS 'Rank to its waiting, that is its own duration less the shortest; by device or number where ranks are unknown; NULL for one rank alone. [ns]';
COMMENT ON COLUMN v1.collectives.total_wait_ns IS 'Sum of the waiting over ranks; NULL for one rank alone. [ns]';
COMMENT ON COLUMN v1.collectives.start_ns IS 'First start over ranks on the common clock (Unix time where known); NULL where clocks cannot be compared. [ns]';
COMMENT ON COLUMN v1.collectives.end_ns IS 'Last end over ranks on the common clock. [ns]';
COMMENT ON COLUMN v1.collectives.skew_start_ns IS 'Last start less first start over ranks; NULL for one rank alone and where clocks cannot be compared. [ns]';
COMMENT ON COLUMN v1.collectives.skew_end_ns IS 'Last end less first end over ranks; NULL as skew_start_ns. [ns]';
COMMENT ON COLUMN v1.collectives.last_rank IS 'The rank that starts last, for which the others wait; NULL where the last two are closer than the clocks'' residual, or start together. [-]';
COMMENT ON COLUMN v1.collectives.clock_residual_ns IS 'Median residual of the ranks'' clocks after alignment, the largest of the ranks; NULL if they are not aligned. [ns]';
COMMENT ON COLUMN v1.collectives.algorithm_gbps IS 'Message over latency; of an all-to-all with different sizes the largest ranks message, NULL where split sizes were not recorded (1e9 bytes per second). [GB/s]';
COMMENT ON COLUMN v1.collectives.bus_gbps IS 'Algorithm bandwidth times the factor of nccl-tests for this collective and number of ranks; of an all-to-all with different sizes sent_bytes over latency. [GB/s]';
