-- Every kernel of class collective with its recorded context: operators that contain its launch, message, group, step.
-- Grain: kernel of class collective. The element type is the recorded one, else the one in the kernel name.
-- list_id is the number of the group's list of ranks (v1._group_list); split_ranks is the list itself, where splits are
-- recorded.
CREATE VIEW v1._collective_kernel AS
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
    x.group_ranks AS split_ranks,
    coalesce(e.dtype, nullif(regexp_extract(
        e.name, '_(bf16|f16|f32|f64|[iu](?:8|32|64)|f8e4m3|f8e5m2|half|float|double|u?int(?:8|32|64)_t)(?:_|\(|$)', 1
    ), '')) AS dtype,
    e.group_name, e.group_size, l.list_id, l.is_shortened, e.sequence,
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
LEFT JOIN v1._group_list AS l ON l.group_ranks = e.group_ranks
WHERE e.kind = 'kernel' AND e.class = 'collective';
