-- Every GPU event with its capture, vendor and class, also dispatches measured while hardware counters were read
-- and events whose times cannot be true.
-- Grain: row of main.kernel_event, of every kind. Class: copies and memsets are 'copy', graph replays 'graph'; a
-- kernel's is the user's rule if one matched its name, else collective if it was recorded with collective
-- arguments, else the shipped rule's.
-- Why operator, launch and step are not here: they are joins of millions to millions, which a report pays for only
-- when it asks for them (hook join in ../README.md).
CREATE VIEW v1._recorded_event AS
SELECT
    e.capture_id, e.event_id, e.kind,
    e.source, e.rank, e.labels, e.vendor,
    e.device_id, e.context_id, e.queue_id, e.stream_id,
    e.name,
    CASE
        WHEN e.kind IN ('memcpy', 'memset') THEN 'copy'
        WHEN e.kind = 'graph' THEN 'graph'
        WHEN e.collective IS NOT NULL AND n.rule_source <> 'user' THEN 'collective'
        ELSE n.class
    END AS class,
    e.start_ns, e.duration_ns, e.end_ns,
    e.correlation_id, e.launch_id, e.op_id, e.graph_id, e.graph_node_id,
    e.grid_x, e.grid_y, e.grid_z, e.block_x, e.block_y, e.block_z,
    e.registers_per_thread, e.static_shared_bytes, e.dynamic_shared_bytes, e.shared_bytes, e.occupancy_percent,
    e.bytes, e.copy_kind,
    e.collective, e.message_in_elements, e.message_out_elements, e.dtype,
    e.group_name, e.group_size, e.group_ranks, e.sequence,
    e.is_counted,
    e.time_fault
FROM v1._captured_event AS e
LEFT JOIN v1._kernel_class AS n ON n.name = e.name;
