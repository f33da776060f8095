-- How much does each rank send and receive in each all-to-all call?
-- Grain: rank's kernel in an all-to-all call. in_bytes and in_tokens count what arrives at the rank, out_bytes and
-- out_tokens what leaves it, its own share included, because the rank's experts have to work on that too. Tokens are
-- rows of the tensor: the sums of split sizes. What was not recorded with the call is taken from the shapes of
-- c10d::alltoall_base_, whose first arguments are the output and the input. (The type in the name of a send/receive
-- kernel is not that of the tensors.)
CREATE VIEW v1._expert_part AS
WITH parts AS (
    SELECT p.*
    FROM v1._collective_member AS p
    WHERE p.collective = 'alltoall'
),
recorded AS (
    SELECT
        p.*,
        x.message_in_elements, x.message_out_elements, x.message_in_splits, c.message_out_splits,
        x.group_ranks,
        x.dtype AS recorded_dtype,
        CASE WHEN o.name LIKE '%alltoall_base%' THEN o.input_dims ELSE q.input_dims END AS dims,
        CASE WHEN o.name LIKE '%alltoall_base%' THEN o.input_types ELSE q.input_types END AS types
    FROM parts AS p
    INNER JOIN main.kernel_event AS x ON x.capture_id = p.capture_id AND x.event_id = p.event_id
    LEFT JOIN main.collective_call AS c ON c.capture_id = x.capture_id AND c.call_id = x.call_id
    LEFT JOIN main.op AS o ON o.capture_id = x.capture_id AND o.op_id = x.op_id
    LEFT JOIN main.op AS q
        ON q.capture_id = o.capture_id AND q.op_id = o.parent_op_id AND q.name LIKE '%alltoall_base%'
),
sized AS (
    SELECT
        r.* EXCLUDE (dims, types, recorded_dtype),
        TRY_CAST(regexp_extract(dims, '^\[(\[[0-9, ]*\])', 1) AS BIGINT[]) AS out_dims,
        TRY_CAST(regexp_extract(dims, '^\[\[[0-9, ]*\],\s*(\[[0-9, ]*\])', 1) AS BIGINT[]) AS in_dims,
        v1._element_bytes(lower(regexp_replace(
            coalesce(r.recorded_dtype, regexp_extract(types, '^\["([^"]*)"', 1)), '^(c10::|nccl)| int$', ''
        ))) AS element_bytes,
        coalesce(r.message_out_elements, list_product(out_dims)::BIGINT) * element_bytes AS in_bytes,
        coalesce(r.message_in_elements, list_product(in_dims)::BIGINT) * element_bytes AS out_bytes,
        coalesce(list_sum(TRY_CAST(r.message_out_splits AS BIGINT[]))::BIGINT, out_dims[1]) AS in_tokens,
        coalesce(list_sum(TRY_CAST(r.message_in_splits AS BIGINT[]))::BIGINT, in_dims[1]) AS out_tokens
    FROM recorded AS r
),
compared AS (
    SELECT
        s.*,
        count(*) OVER call = s.ranks_expected AS is_whole,
        CASE WHEN is_whole THEN max(s.in_bytes) OVER call / nullif(avg(s.in_bytes) OVER call, 0) END AS imbalance,
        CASE WHEN is_whole THEN max(s.out_bytes) OVER call / nullif(avg(s.out_bytes) OVER call, 0) END AS out_imbalance,
        100.0 * s.in_bytes / nullif(sum(s.in_bytes) OVER call, 0) AS in_percent,
        100.0 * s.out_bytes / nullif(sum(s.out_bytes) OVER call, 0) AS out_percent,
        rank() OVER (PARTITION BY s.collective_id ORDER BY s.in_bytes DESC NULLS LAST) AS in_place,
        rank() OVER (PARTITION BY s.collective_id ORDER BY s.out_bytes DESC NULLS LAST) AS out_place
    FROM sized AS s
    WINDOW call AS (PARTITION BY s.collective_id)
),
hot AS (
    SELECT
        c.collective_id,
        CASE WHEN count(*) FILTER (c.in_place = 1) = 1 AND max(c.imbalance) > 1
            THEN max(c.member) FILTER (c.in_place = 1) END AS in_hot,
        CASE WHEN count(*) FILTER (c.out_place = 1) = 1 AND max(c.out_imbalance) > 1
            THEN max(c.member) FILTER (c.out_place = 1) END AS out_hot,
        max(c.imbalance) >= max(c.out_imbalance) AS is_in
    FROM compared AS c
    GROUP BY c.collective_id
)
SELECT
    c.*,
    CASE WHEN h.is_in THEN h.in_hot ELSE h.out_hot END AS hot_member,
    CASE
        WHEN c.ranks < 2 OR c.start_ns IS NULL THEN NULL
        WHEN c.last_member = c.member THEN c.match_wait_ns
        ELSE 0
    END AS wait_caused_ns
FROM compared AS c
INNER JOIN hot AS h ON h.collective_id = c.collective_id;
