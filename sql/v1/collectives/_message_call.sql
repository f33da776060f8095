-- Which send and receive calls did each rank make, and which kernel carried each out?
-- Grain: send or receive call with its kernel. A call on its own launches a kernel. Batched calls (batch_isend_irecv)
-- share one: PyTorch records each of them while NCCL collects them, and launches the kernel when the batch ends, so
-- calls without a kernel of their own are carried out by the next one launched on their thread; if a range
-- nccl:coalesced holds calls and just one launch, they belong together. Threads that only call and threads that only
-- launch are taken together, because communicators that do not block launch from a thread of their own. Calls come from
-- main.collective_call; if a capture has none, from the operators c10d::send and c10d::recv_, whose arguments are the
-- tensors, the group, the other rank's number in the group, and a tag.
-- peer_rank: the other rank: as recorded, else by its number in the list of ranks of the group. Lists shortened by
-- PyTorch (more than 30 ranks) go on in equal steps, since it records no other groups as a list; for others it records
-- an empty one, and the ranks are in the header of the trace (pg_config). If groups were not recorded at all, the group
-- is taken to be all ranks.
CREATE VIEW v1._message_call AS
WITH words AS (
    SELECT DISTINCT c.collective AS word
    FROM main.collective_call AS c
),
meanings AS (
    SELECT
        w.word,
        lower(w.word) AS bare,
        CASE WHEN bare IN ('send', 'isend') THEN true WHEN bare IN ('recv', 'irecv') THEN false END AS is_send
    FROM words AS w
),
recorded AS (
    SELECT
        c.capture_id, c.call_id, m.is_send,
        greatest(c.message_in_elements, c.message_out_elements) AS elements,
        c.dtype, c.group_name, c.group_size, c.group_ranks,
        CASE WHEN m.is_send THEN c.destination_rank ELSE c.source_rank END AS recorded_peer,
        coalesce(
            c.rank_in_group, TRY_CAST(json_extract_string(TRY_CAST(p.concrete_inputs AS JSON), '$[2]') AS BIGINT)
        ) AS peer_in_group
    FROM main.collective_call AS c
    INNER JOIN meanings AS m ON m.word = c.collective AND m.is_send IS NOT NULL
    LEFT JOIN main.op AS o ON o.capture_id = c.capture_id AND o.op_id = c.call_id
    LEFT JOIN main.op AS p
        ON p.capture_id = o.capture_id AND p.op_id = o.parent_op_id AND p.name IN ('c10d::send', 'c10d::recv_')
),
operators AS (
    SELECT
        o.capture_id, o.op_id AS call_id, o.name = 'c10d::send' AS is_send,
        TRY_CAST(regexp_extract(o.input_dims, '^\[\[(\[[0-9, ]*\])\]', 1) AS BIGINT[]) AS dims,
        TRY_CAST(json_extract_string(TRY_CAST(o.concrete_inputs AS JSON), '$[2]') AS BIGINT) AS peer_in_group
    FROM main.op AS o
    WHERE o.name IN ('c10d::send', 'c10d::recv_')
        AND o.capture_id NOT IN (SELECT r.capture_id FROM recorded AS r)
),
calls AS (
    SELECT
        r.capture_id, r.call_id, r.is_send, r.elements, r.dtype, r.group_name, r.group_size, r.group_ranks,
        r.recorded_peer, r.peer_in_group
    FROM recorded AS r
    UNION ALL
    SELECT
        p.capture_id, p.call_id, p.is_send,
        list_product(p.dims)::BIGINT AS elements,
        NULL AS dtype, NULL AS group_name, NULL AS group_size, NULL AS group_ranks, NULL AS recorded_peer, p.peer_in_group
    FROM operators AS p
),
kernel_names AS (
    SELECT
        n.name,
        v1._collective_spelt(replace(replace(lower(
            regexp_extract(n.name, '^(?:void )?([^(<]*)', 1)
        ), '_', ''), ' ', '')) AS collective
    FROM (SELECT DISTINCT k.name FROM v1._kernel_class AS k WHERE k.class = 'collective') AS n
),
kernels AS (
    SELECT
        e.capture_id, e.event_id, e.call_id, e.launch_id,
        m.is_send IS NULL AS is_bare
    FROM main.kernel_event AS e
    INNER JOIN kernel_names AS n ON n.name = e.name
    LEFT JOIN meanings AS m ON m.word = e.collective
    WHERE e.kind = 'kernel' AND e.time_fault IS NULL
        AND e.capture_id IN (SELECT c.capture_id FROM calls AS c)
        AND (
            m.is_send IS NOT NULL
            OR coalesce(n.collective, 'sendrecv') = 'sendrecv'
            AND v1._collective_spelt(replace(m.bare, '_', '')) IS NULL
        )
),
own AS (
    SELECT k.capture_id, k.call_id, min(k.event_id) AS event_id
    FROM kernels AS k
    WHERE NOT k.is_bare
    GROUP BY k.capture_id, k.call_id
),
-- Calls without a kernel, launches and batches, in the order of each thread.
moments AS (
    SELECT
        c.capture_id, o.process_id, o.thread_id, o.start_ns,
        1 AS kind, c.call_id AS moment_id, c.call_id, NULL AS event_id, NULL AS batch
    FROM calls AS c
    INNER JOIN main.op AS o ON o.capture_id = c.capture_id AND o.op_id = c.call_id
    ANTI JOIN own AS w ON w.capture_id = c.capture_id AND w.call_id = c.call_id
    UNION ALL
    SELECT
        k.capture_id, l.process_id, l.thread_id, l.start_ns,
        2 AS kind, k.event_id AS moment_id, NULL AS call_id, k.event_id, NULL AS batch
    FROM kernels AS k
    INNER JOIN main.launch AS l ON l.capture_id = k.capture_id AND l.launch_id = k.launch_id
    UNION ALL
    SELECT
        a.capture_id, a.process_id, a.thread_id, a.start_ns,
        0 AS kind, a.annotation_id AS moment_id, NULL AS call_id, NULL AS event_id,
        {'id': a.annotation_id, 'end_ns': a.start_ns + a.duration_ns} AS batch
    FROM main.annotation AS a
    WHERE a.name = 'nccl:coalesced' AND a.style = 'user' AND a.duration_ns IS NOT NULL
        AND a.capture_id IN (SELECT c.capture_id FROM calls AS c)
),
lanes AS (
    SELECT
        m.capture_id, m.process_id, m.thread_id,
        count(m.call_id) > 0 AND count(m.event_id) > 0 AS is_alone
    FROM moments AS m
    GROUP BY m.capture_id, m.process_id, m.thread_id
),
placed AS (
    SELECT
        m.capture_id, m.call_id, m.event_id, m.start_ns,
        last_value(m.batch IGNORE NULLS) OVER before AS batch,
        first_value(m.event_id IGNORE NULLS) OVER (
            thread ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING
        ) AS next_id
    FROM moments AS m
    INNER JOIN lanes AS l
        ON l.capture_id = m.capture_id AND l.process_id IS NOT DISTINCT FROM m.process_id
        AND l.thread_id IS NOT DISTINCT FROM m.thread_id
    WINDOW
        thread AS (
            PARTITION BY m.capture_id, m.process_id, CASE WHEN l.is_alone THEN m.thread_id END
            ORDER BY m.start_ns, m.kind, m.moment_id
        ),
        before AS (thread ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
),
batches AS (
    SELECT p.capture_id, p.batch.id AS batch_id, min(p.event_id) AS event_id
    FROM placed AS p
    WHERE p.event_id IS NOT NULL AND p.start_ns <= p.batch.end_ns
    GROUP BY p.capture_id, p.batch.id
    HAVING count(*) = 1
),
batched AS (
    SELECT p.capture_id, p.call_id, coalesce(b.event_id, p.next_id) AS event_id
    FROM placed AS p
    LEFT JOIN batches AS b
        ON b.capture_id = p.capture_id AND b.batch_id = p.batch.id AND p.start_ns <= p.batch.end_ns
    WHERE p.call_id IS NOT NULL
),
carried AS (
    SELECT w.capture_id, w.call_id, w.event_id, false AS is_batched
    FROM own AS w
    UNION ALL
    SELECT b.capture_id, b.call_id, b.event_id, true AS is_batched
    FROM batched AS b
    WHERE b.event_id IS NOT NULL
),
lists AS (
    SELECT
        g.group_ranks,
        TRY_CAST(regexp_replace(g.group_ranks, ',?\s*\.\.\..*$', ']') AS BIGINT[]) AS ranks,
        contains(g.group_ranks, '...') AS is_shortened
    FROM (SELECT DISTINCT c.group_ranks FROM calls AS c WHERE c.group_ranks IS NOT NULL) AS g
),
headers AS (
    SELECT h.capture_id, unnest(json_extract(TRY_CAST(h.metadata AS JSON), '$.pg_config[*]')) AS named
    FROM main.capture AS h
    WHERE contains(h.metadata, '"pg_config"')
),
header_groups AS (
    SELECT
        h.capture_id,
        json_extract_string(h.named, '$.pg_name') AS group_name,
        any_value(TRY_CAST(json_extract_string(h.named, '$.ranks') AS BIGINT[])) AS ranks
    FROM headers AS h
    GROUP BY h.capture_id, json_extract_string(h.named, '$.pg_name')
)
SELECT
    c.capture_id, c.call_id, k.event_id, k.is_batched, c.is_send,
    coalesce(
        c.recorded_peer,
        g.ranks[c.peer_in_group + 1],
        CASE WHEN g.is_shortened THEN g.ranks[1] + (g.ranks[2] - g.ranks[1]) * c.peer_in_group END,
        h.ranks[c.peer_in_group + 1],
        CASE WHEN c.group_ranks IS NULL THEN c.peer_in_group END
    )::INTEGER AS peer_rank,
    c.elements,
    c.dtype,
    c.elements * v1._element_bytes(lower(regexp_replace(c.dtype, '^(c10::|nccl)', ''))) AS bytes,
    c.group_name, c.group_size, c.group_ranks,
    coalesce(o.start_ns, e.start_ns) AS called_ns,
    e.name, e.device_id, e.stream_id, e.start_ns, e.duration_ns
FROM calls AS c
INNER JOIN carried AS k ON k.capture_id = c.capture_id AND k.call_id = c.call_id
INNER JOIN main.kernel_event AS e ON e.capture_id = k.capture_id AND e.event_id = k.event_id
LEFT JOIN main.op AS o ON o.capture_id = c.capture_id AND o.op_id = c.call_id
LEFT JOIN lists AS g ON g.group_ranks = c.group_ranks
LEFT JOIN header_groups AS h ON h.capture_id = c.capture_id AND h.group_name = c.group_name;
