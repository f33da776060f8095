-- Every GPU event with all that other tables know about it: the base of every view over GPU time.
-- Grain: row of main.kernel_event, of every kind. Class: copies and memsets are 'copy', graph replays 'graph'; a
-- kernel's is the user's rule if one matched its name, else collective if it was recorded with collective
-- arguments, else the shipped rule's.
-- Why the joins are grouped: a join to one row per key is dropped by the optimiser when no column of it is asked
-- for, so counting kernels by name reads one table, however many are joined here.
CREATE VIEW v1._gpu_event AS
SELECT
    e.capture_id, e.event_id, e.kind,
    c.source, c.rank, c.labels,
    d.vendor,
    e.device_id, e.context_id, e.queue_id, e.stream_id,
    e.name,
    CASE
        WHEN e.kind IN ('memcpy', 'memset') THEN 'copy'
        WHEN e.kind = 'graph' THEN 'graph'
        WHEN e.collective IS NOT NULL AND n.rule_source <> 'user' THEN 'collective'
        ELSE n.class
    END AS class,
    e.start_ns,
    e.duration_ns,
    e.start_ns + e.duration_ns AS end_ns,
    coalesce(q.clipped_duration_ns, e.duration_ns) AS clipped_duration_ns,
    v.event_id IS NOT NULL AS overlaps_prev,
    o.name AS op_name,
    o.input_dims,
    s.step,
    s.step_index,
    l.name AS launch_name,
    l.process_id AS launch_process_id,
    l.thread_id AS launch_thread_id,
    e.correlation_id, e.launch_id, e.op_id, e.graph_id, e.graph_node_id,
    e.grid_x, e.grid_y, e.grid_z, e.block_x, e.block_y, e.block_z,
    e.registers_per_thread, e.static_shared_bytes, e.dynamic_shared_bytes, e.shared_bytes, e.occupancy_percent,
    e.bytes, e.copy_kind,
    e.collective, e.message_in_elements, e.message_out_elements, e.dtype,
    e.group_name, e.group_size, e.group_ranks, e.sequence
FROM main.kernel_event AS e
LEFT JOIN main.capture AS c ON c.capture_id = e.capture_id
LEFT JOIN (
    SELECT capture_id, device_id, min(vendor) AS vendor
    FROM main.device
    GROUP BY capture_id, device_id
) AS d ON d.capture_id = e.capture_id AND d.device_id = e.device_id
LEFT JOIN (
    SELECT name, min(class) AS class, min(rule_source) AS rule_source
    FROM v1._kernel_class
    GROUP BY name
) AS n ON n.name = e.name
LEFT JOIN (
    SELECT capture_id, event_id, min(clipped_duration_ns) AS clipped_duration_ns
    FROM v1._clipped_event
    GROUP BY capture_id, event_id
) AS q ON q.capture_id = e.capture_id AND q.event_id = e.event_id
LEFT JOIN (
    SELECT capture_id, event_id
    FROM v1._overlapping_kernel
    GROUP BY capture_id, event_id
) AS v ON v.capture_id = e.capture_id AND v.event_id = e.event_id
LEFT JOIN (
    SELECT capture_id, op_id, any_value(name) AS name, any_value(input_dims) AS input_dims
    FROM main.op
    GROUP BY capture_id, op_id
) AS o ON o.capture_id = e.capture_id AND o.op_id = e.op_id
LEFT JOIN v1._step_kernel AS s ON s.capture_id = e.capture_id AND s.event_id = e.event_id
LEFT JOIN (
    SELECT
        capture_id,
        launch_id,
        any_value(name) AS name,
        any_value(process_id) AS process_id,
        any_value(thread_id) AS thread_id
    FROM main.launch
    GROUP BY capture_id, launch_id
) AS l ON l.capture_id = e.capture_id AND l.launch_id = e.launch_id;
