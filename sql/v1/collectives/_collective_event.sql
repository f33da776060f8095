-- What each collective kernel is: which collective, of what size, in which group, on which member of its configuration.
-- Grain: kernel of class collective. v1._collective_kernel explains how the collective is determined,
-- v1._grouped_collective the member.
-- message_bytes is the size of the whole message as in nccl-tests: the output of an all-gather, the input of a
-- reduce-scatter, else the input. sent_bytes is the number of bytes sent to other ranks in an all-to-all, from recorded
-- split sizes (their unit is a row of the tensor); is_even: the rank sends the same amount to each. group_key is equal
-- on all ranks of a group: its common name and the number of its list of ranks. Sizes by which calls are told apart are
-- equal on all ranks of a group: there is none where sizes may differ between ranks (all-to-all, gather, scatter), and
-- if groups were not recorded, the kernel name takes its place.
CREATE VIEW v1._collective_event AS
SELECT
    e.* EXCLUDE (
        plain_name, message_in_elements, message_out_elements, bytes, splits, has_splits, element_bytes,
        split_ranks
    ),
    CASE collective
        WHEN 'allgather' THEN coalesce(message_out_elements, message_in_elements * ranks_expected)
        WHEN 'reduce_scatter' THEN coalesce(message_in_elements, message_out_elements * ranks_expected)
        WHEN 'alltoall' THEN coalesce(message_in_elements, message_out_elements)
        ELSE greatest(message_in_elements, message_out_elements)
    END AS message_elements,
    coalesce(
        message_elements * element_bytes,
        bytes * CASE WHEN collective IN ('allgather', 'reduce_scatter') THEN ranks_expected ELSE 1 END
    ) AS message_bytes,
    CASE
        WHEN collective <> 'alltoall' OR len(splits) <> ranks_expected OR list_min(splits) < 0 THEN NULL
        WHEN list_sum(splits) = 0 THEN 0
        ELSE TRY_CAST(message_bytes * (list_sum(splits) - splits[
            coalesce(
                list_position(TRY_CAST(split_ranks AS BIGINT[]), rank), CASE WHEN list_id IS NULL THEN member + 1 END
            )
        ]) // list_sum(splits) AS BIGINT)
    END AS sent_bytes,
    CASE
        WHEN collective <> 'alltoall' THEN NULL
        WHEN has_splits THEN coalesce(len(splits) = ranks_expected AND list_min(splits) = list_max(splits), false)
        WHEN regexp_matches(recorded_as, '(?i)to_?all_?v') THEN false
        ELSE coalesce(message_in_elements = message_out_elements, true)
    END AS is_even,
    group_name IS NOT NULL OR list_id IS NOT NULL AS is_grouped,
    CASE WHEN NOT is_grouped THEN plain_name END AS size_name,
    CASE
        WHEN is_grouped AND collective IN ('allreduce', 'allgather', 'reduce_scatter', 'broadcast', 'reduce')
            THEN message_elements
    END AS size_elements
FROM v1._grouped_collective AS e;
