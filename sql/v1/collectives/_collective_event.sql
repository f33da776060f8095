-- What every collective kernel is: which collective, of what size, in which group, and which member of its
-- configuration ran it.
-- Grain: kernel of class collective. The collective is the one recorded with it; else, for kernels whose name does not
-- tell (RCCL's generic ones, and send/receive, which an all-to-all is made of), that of the operator around the launch
-- or of the one around that; else the name's. Member: the rank where every capture of the set knows it and used one
-- device; else the device, where devices differ; else a number. message_bytes is of the whole message as in NCCL's
-- tests: what an all-gather gives, what a reduce-scatter takes, else what goes in. sent_bytes is what goes to other ranks
-- in an all-to-all, by recorded split sizes (their unit is a row of the tensor); is_even: the rank sends each as much.
-- size_key is what all ranks of the
-- group agree upon; where sizes may differ between ranks (all-to-all, gather, scatter) it is empty. group_key is what the
-- ranks of a group agree upon: its name and list of ranks; where the ranks of a list have no name in common, but as many
-- of them (each counts its own groups), the list, and the place of the name among those that the rank has for it. Lists
-- that were cut short (...) tell too little for that.
CREATE VIEW v1._collective_event AS
WITH events AS (
    SELECT
        e.capture_id, e.event_id, e.device_id,
        s.set_id, s.source, s.labels, s.rank,
        e.name,
        regexp_extract(e.name, '^(?:void )?([^(<]*)', 1) AS plain_name,
        e.collective AS recorded_as,
        o.name AS op_name,
        p.name AS outer_op_name,
        e.message_in_elements, e.message_out_elements, e.bytes,
        TRY_CAST(x.message_in_splits AS BIGINT[]) AS splits,
        x.message_in_splits IS NOT NULL AS has_splits,
        coalesce(e.dtype, nullif(regexp_extract(
            e.name, '_(bf16|f16|f32|f64|[iu](?:8|32|64)|f8e4m3|f8e5m2|half|float|double|u?int(?:8|32|64)_t)(?:_|\(|$)', 1
        ), '')) AS dtype,
        e.group_name, e.group_size, e.group_ranks, e.sequence,
        t.step, t.step_index, t.marked_step,
        e.start_ns, e.end_ns, e.duration_ns,
        s.clock_zero_unix_ns
    FROM v1._gpu_event AS e
    INNER JOIN v1._capture_set AS s ON s.capture_id = e.capture_id
    LEFT JOIN main.op AS o ON o.capture_id = e.capture_id AND o.op_id = e.op_id
    LEFT JOIN main.op AS p ON p.capture_id = o.capture_id AND p.op_id = o.parent_op_id
    LEFT JOIN v1._step_kernel AS t ON t.capture_id = e.capture_id AND t.event_id = e.event_id
    LEFT JOIN main.kernel_event AS x
        ON x.capture_id = e.capture_id AND x.event_id = e.event_id AND x.message_in_splits IS NOT NULL
    WHERE e.kind = 'kernel' AND e.class = 'collective'
),
words AS (
    SELECT recorded_as AS word FROM events
    UNION
    SELECT op_name AS word FROM events
    UNION
    SELECT outer_op_name AS word FROM events
    UNION
    SELECT plain_name AS word FROM events
),
spellings AS (
    SELECT w.word, replace(replace(lower(w.word), '_', ''), ' ', '') AS bare
    FROM words AS w
    WHERE w.word IS NOT NULL
),
meanings AS (
    SELECT
        word,
        CASE
            WHEN bare LIKE '%reducescatter%' THEN 'reduce_scatter'
            WHEN bare LIKE '%allreduce%' OR bare LIKE '%crossdevicereduce%' THEN 'allreduce'
            WHEN bare LIKE '%allgather%' THEN 'allgather'
            WHEN bare LIKE '%alltoall%' THEN 'alltoall'
            WHEN bare LIKE '%broadcast%' OR bare LIKE '%bcast%' THEN 'broadcast'
            WHEN bare LIKE '%barrier%' THEN 'barrier'
            WHEN regexp_matches(bare, 'sendrecv|(^|:)i?(send|recv)') THEN 'sendrecv'
            WHEN regexp_matches(bare, '(^|:|ncclkernel|nccldevkernel)reduce') THEN 'reduce'
            WHEN regexp_matches(bare, '(^|:|nccl)gather') THEN 'gather'
            WHEN regexp_matches(bare, '(^|:|nccl)scatter') THEN 'scatter'
        END AS collective
    FROM spellings
),
participants AS (
    SELECT DISTINCT set_id, capture_id, device_id, rank
    FROM events
),
sets AS (
    SELECT
        set_id,
        count(*) AS members,
        bool_and(rank IS NOT NULL) AND count(DISTINCT capture_id) = count(*) AS is_by_rank,
        count(DISTINCT device_id) = count(*) AS is_by_device,
        is_by_rank AND count(DISTINCT rank) < count(*) AS has_duplicate
    FROM participants
    GROUP BY set_id
),
members AS (
    SELECT
        p.set_id, p.capture_id, p.device_id, z.members, z.is_by_rank, z.has_duplicate,
        CASE
            WHEN z.is_by_rank THEN p.rank
            WHEN z.is_by_device THEN p.device_id
            ELSE row_number() OVER (PARTITION BY p.set_id ORDER BY p.capture_id, p.device_id) - 1
        END::INTEGER AS member
    FROM participants AS p
    INNER JOIN sets AS z ON z.set_id = p.set_id
),
group_names AS (
    SELECT
        m.set_id, m.member, e.group_ranks, e.group_name,
        row_number() OVER (
            PARTITION BY m.set_id, m.member, e.group_ranks
            ORDER BY TRY_CAST(e.group_name AS BIGINT) NULLS LAST, min(e.start_ns), e.group_name
        ) AS place,
        count(*) OVER (PARTITION BY m.set_id, e.group_ranks, e.group_name) AS members_with_it,
        count(*) OVER (PARTITION BY m.set_id, m.member, e.group_ranks) AS names
    FROM events AS e
    INNER JOIN members AS m
        ON m.set_id = e.set_id AND m.capture_id = e.capture_id AND m.device_id IS NOT DISTINCT FROM e.device_id
    WHERE e.group_name IS NOT NULL AND e.group_ranks NOT LIKE '%...%'
    GROUP BY m.set_id, m.member, e.group_ranks, e.group_name
),
group_lists AS (
    SELECT
        set_id, group_ranks,
        max(members_with_it) < count(DISTINCT member) AND min(names) = max(names) AS is_by_place
    FROM group_names
    GROUP BY set_id, group_ranks
),
named AS (
    SELECT
        e.capture_id, e.event_id, e.device_id, e.set_id, e.source, e.labels, e.rank, e.name, e.plain_name, e.recorded_as,
        e.message_in_elements, e.message_out_elements, e.bytes, e.splits, e.has_splits, e.dtype,
        e.group_name, e.group_size, e.group_ranks, e.sequence, e.step, e.step_index, e.marked_step,
        e.start_ns, e.end_ns, e.duration_ns, e.clock_zero_unix_ns,
        CASE
            WHEN a.collective IS NOT NULL THEN a.collective
            WHEN n.collective IS NULL OR n.collective = 'sendrecv' THEN coalesce(o.collective, p.collective, n.collective)
            ELSE n.collective
        END AS known_collective,
        coalesce(known_collective, 'other') AS collective,
        coalesce(e.group_size, m.members) AS ranks_expected,
        lower(regexp_replace(e.dtype, '^(c10::|nccl)', '')) AS plain_dtype,
        CASE
            WHEN regexp_matches(plain_dtype, 'float[48]|^f8|fp[48]|int8|^byte|char|bool|^[iu]8|bits8') THEN 1
            WHEN plain_dtype IN ('half', 'bfloat16', 'float16', 'f16', 'bf16', 'short', 'int16', 'uint16', 'bits16') THEN 2
            WHEN plain_dtype IN ('double', 'float64', 'f64', 'long', 'complexfloat') THEN 8
            WHEN regexp_matches(plain_dtype, '^q?u?int64|^[iu]64$') THEN 8
            WHEN plain_dtype = 'complexdouble' THEN 16
            WHEN plain_dtype IN ('float', 'float32', 'f32', 'int', 'complexhalf') THEN 4
            WHEN regexp_matches(plain_dtype, '^q?u?int32|^[iu]32$') THEN 4
        END AS element_bytes,
        m.member, m.members, m.is_by_rank, m.has_duplicate,
        CASE WHEN g.is_by_place THEN '#' || w.place ELSE e.group_name END AS common_name
    FROM events AS e
    INNER JOIN members AS m
        ON m.set_id = e.set_id AND m.capture_id = e.capture_id AND m.device_id IS NOT DISTINCT FROM e.device_id
    LEFT JOIN group_lists AS g ON g.set_id = e.set_id AND g.group_ranks = e.group_ranks
    LEFT JOIN group_names AS w
        ON w.set_id = e.set_id AND w.member = m.member AND w.group_ranks = e.group_ranks
        AND w.group_name = e.group_name
    LEFT JOIN meanings AS a ON a.word = e.recorded_as
    LEFT JOIN meanings AS o ON o.word = e.op_name
    LEFT JOIN meanings AS p ON p.word = e.outer_op_name
    LEFT JOIN meanings AS n ON n.word = e.plain_name
)
SELECT
    capture_id, event_id, device_id, set_id, source, labels, rank, name, recorded_as, collective, dtype,
    group_name, group_size, group_ranks, sequence, ranks_expected, step, step_index, marked_step,
    start_ns, end_ns, duration_ns, clock_zero_unix_ns, member, members, is_by_rank, has_duplicate,
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
    coalesce(list_position(TRY_CAST(group_ranks AS BIGINT[]), rank), CASE WHEN group_ranks IS NULL THEN member + 1 END)
        AS place_in_group,
    CASE
        WHEN collective <> 'alltoall' OR len(splits) <> ranks_expected OR list_min(splits) < 0 THEN NULL
        WHEN list_sum(splits) = 0 THEN 0
        ELSE TRY_CAST(message_bytes * (list_sum(splits) - splits[place_in_group]) // list_sum(splits) AS BIGINT)
    END AS sent_bytes,
    CASE
        WHEN collective <> 'alltoall' THEN NULL
        WHEN has_splits THEN coalesce(len(splits) = ranks_expected AND list_min(splits) = list_max(splits), false)
        WHEN regexp_matches(recorded_as, '(?i)to_?all_?v') THEN false
        ELSE coalesce(message_in_elements = message_out_elements, true)
    END AS is_even,
    group_name IS NOT NULL OR group_ranks IS NOT NULL AS is_grouped,
    coalesce(common_name, '') || '|' || coalesce(group_ranks, '') AS group_key,
    CASE
        WHEN NOT is_grouped THEN plain_name
        WHEN collective IN ('allreduce', 'allgather', 'reduce_scatter', 'broadcast', 'reduce')
            THEN coalesce(message_elements::VARCHAR, '')
        ELSE ''
    END AS size_key
FROM named;
