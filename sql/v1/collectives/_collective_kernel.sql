-- Every kernel of class collective with its recorded context: collective, message, group, step.
-- Grain: kernel of class collective. The collective is the recorded one; else, for kernels whose name does not identify
-- it (RCCL's generic kernels, and send/receive, which make up an all-to-all), the one named by the operator that
-- contains the launch, or by that operator's parent; else the one in the kernel name. Each distinct word and name is
-- evaluated once, not once per kernel, and only kernels that need their operator look for it. The element type is the
-- recorded one, else the one in the kernel name. list_id is the number of the group's list of ranks (v1._group_list);
-- split_ranks is the list itself, where splits are recorded.
CREATE VIEW v1._collective_kernel AS
WITH names AS (
    SELECT
        k.name,
        regexp_extract(k.name, '^(?:void )?([^(<]*)', 1) AS plain_name,
        v1._collective_spelt(replace(replace(lower(plain_name), '_', ''), ' ', '')) AS collective,
        nullif(regexp_extract(
            k.name, '_(bf16|f16|f32|f64|[iu](?:8|32|64)|f8e4m3|f8e5m2|half|float|double|u?int(?:8|32|64)_t)(?:_|\(|$)', 1
        ), '') AS dtype,
        v1._element_bytes(lower(dtype)) AS element_bytes
    FROM (SELECT DISTINCT e.name FROM main.kernel_event AS e WHERE e.kind = 'kernel') AS k
),
recorded AS (
    SELECT
        r.collective AS recorded_as,
        r.dtype,
        v1._collective_spelt(replace(replace(lower(r.collective), '_', ''), ' ', '')) AS collective,
        v1._element_bytes(lower(regexp_replace(r.dtype, '^(c10::|nccl)', ''))) AS element_bytes
    FROM (
        SELECT DISTINCT e.collective, e.dtype
        FROM main.kernel_event AS e
        WHERE e.collective IS NOT NULL OR e.dtype IS NOT NULL
    ) AS r
)
SELECT
    e.capture_id, e.event_id, e.device_id,
    s.set_id, s.rank, s.clock_zero_unix_ns,
    e.name, n.plain_name,
    e.collective AS recorded_as,
    coalesce(r.collective, n.collective) AS spelt_as,
    CASE WHEN r.collective IS NULL AND coalesce(n.collective, 'sendrecv') = 'sendrecv' THEN e.op_id END AS naming_op_id,
    e.message_in_elements, e.message_out_elements, e.bytes,
    TRY_CAST(x.message_in_splits AS BIGINT[]) AS splits,
    x.message_in_splits IS NOT NULL AS has_splits,
    x.group_ranks AS split_ranks,
    coalesce(e.dtype, n.dtype) AS dtype,
    CASE WHEN e.dtype IS NULL THEN n.element_bytes ELSE r.element_bytes END AS element_bytes,
    e.group_name, e.group_size, l.list_id, l.is_shortened, e.sequence,
    t.step, t.step_index, t.marked_step,
    e.start_ns, e.end_ns, e.duration_ns
FROM v1._gpu_event AS e
INNER JOIN names AS n ON n.name = e.name
INNER JOIN v1._capture_set AS s ON s.capture_id = e.capture_id
LEFT JOIN recorded AS r
    ON r.recorded_as IS NOT DISTINCT FROM e.collective AND r.dtype IS NOT DISTINCT FROM e.dtype
LEFT JOIN v1._step_kernel AS t ON t.capture_id = e.capture_id AND t.event_id = e.event_id
LEFT JOIN main.kernel_event AS x
    ON x.capture_id = e.capture_id AND x.event_id = e.event_id AND x.message_in_splits IS NOT NULL
LEFT JOIN v1._group_list AS l ON l.group_ranks = e.group_ranks
WHERE e.kind = 'kernel' AND e.class = 'collective';
