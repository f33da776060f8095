-- How evenly are tokens spread over the ranks (experts) in all-to-all calls, and who waits for whom?
-- Grain: all-to-all call × rank. A mixture of experts sends tokens to the ranks of their experts (dispatch: in_bytes
-- differ) and back again (combine: out_bytes differ); the rank with most to do is late to the second call.
-- v1._expert_part explains the sizes, v1.collectives waiting.
CREATE VIEW v1.expert_load AS
SELECT
    load.source, load.labels, load.capture_id, load.collective_id, load.step, load.member AS rank,
    load.group_name, load.group_ranks, load.ranks, load.ranks_expected AS group_size,
    load.in_bytes, load.out_bytes, load.in_tokens, load.out_tokens, load.in_percent, load.out_percent,
    load.imbalance, load.out_imbalance,
    load.hot_member AS hot_rank,
    load.start_ns, load.duration_ns, load.wait_ns, load.wait_caused_ns, load.event_id
FROM v1._expert_part AS load
WHERE true /* filter load */;

COMMENT ON VIEW v1.expert_load IS 'What each rank receives and sends in all-to-all calls: the load of experts, its imbalance and the waiting it causes. Grain: all-to-all call × rank.';
COMMENT ON COLUMN v1.expert_load.source IS 'Profiler or format of the captures.';
COMMENT ON COLUMN v1.expert_load.labels IS 'Configuration: labels of the captures, without the rank.';
COMMENT ON COLUMN v1.expert_load.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN v1.expert_load.collective_id IS 'The call, as in collectives; may change when more captures are loaded. [-]';
COMMENT ON COLUMN v1.expert_load.step IS 'Step number; NULL outside steps. [-]';
COMMENT ON COLUMN v1.expert_load.rank IS 'Rank; the device or a number if ranks are unknown. [-]';
COMMENT ON COLUMN v1.expert_load.group_name IS 'Process group; NULL if not recorded.';
COMMENT ON COLUMN v1.expert_load.group_ranks IS 'Ranks of the process group, as JSON text as recorded.';
COMMENT ON COLUMN v1.expert_load.ranks IS 'Number of ranks matched. [count]';
COMMENT ON COLUMN v1.expert_load.group_size IS 'Number of ranks in the group. [count]';
COMMENT ON COLUMN v1.expert_load.in_bytes IS 'Bytes that arrive at the rank, its own share included; NULL if not recorded. [bytes]';
COMMENT ON COLUMN v1.expert_load.out_bytes IS 'Bytes that leave the rank, its own share included; NULL if not recorded. [bytes]';
COMMENT ON COLUMN v1.expert_load.in_tokens IS 'Rows of the tensor that arrive: the sum of the output split sizes; NULL if not recorded. [count]';
COMMENT ON COLUMN v1.expert_load.out_tokens IS 'Rows of the tensor that leave: the sum of the input split sizes; NULL if not recorded. [count]';
COMMENT ON COLUMN v1.expert_load.in_percent IS 'Share of the bytes that arrive over all matched ranks. [percent]';
COMMENT ON COLUMN v1.expert_load.out_percent IS 'Share of the bytes that leave over all matched ranks. [percent]';
COMMENT ON COLUMN v1.expert_load.imbalance IS 'Bytes that arrive: maximum over mean of the ranks; 1 is even. NULL if a rank of the group is missing. [ratio]';
COMMENT ON COLUMN v1.expert_load.out_imbalance IS 'Bytes that leave: maximum over mean of the ranks. [ratio]';
COMMENT ON COLUMN v1.expert_load.hot_rank IS 'Rank at which most arrives, or from which most leaves if that is more uneven; NULL if even, or if a rank is missing. [-]';
COMMENT ON COLUMN v1.expert_load.start_ns IS 'Start of the kernel on the common clock (Unix time if known); NULL if clocks cannot be compared. [ns]';
COMMENT ON COLUMN v1.expert_load.duration_ns IS 'Duration of the kernel. [ns]';
COMMENT ON COLUMN v1.expert_load.wait_ns IS 'Waiting time of the rank in the call: its duration less the shortest. [ns]';
COMMENT ON COLUMN v1.expert_load.wait_caused_ns IS 'Waiting time of all ranks in the call, if this rank starts last; else 0. NULL for a single rank and if clocks cannot be compared. [ns]';
COMMENT ON COLUMN v1.expert_load.event_id IS 'Kernel of the rank (kernel_event.event_id). [-]';
