-- Every GPU event without its class: the base of views that learn the class from names once these are grouped. To look
-- up the name of each of millions of events costs more than to add their times up by name.
-- Grain: row of v1._captured_event, without the dispatches measured while hardware counters were read and without
-- events whose times cannot be true (time_fault). `tracedb report` puts v1._gpu_event in the place of this one for
-- --class, and v1._timed_event for --counted.
CREATE VIEW v1._unclassed_event AS
SELECT
    e.capture_id, e.event_id, e.kind,
    e.source, e.rank, e.labels, e.vendor,
    e.device_id, e.context_id, e.queue_id, e.stream_id,
    e.name,
    e.start_ns, e.duration_ns, e.end_ns,
    e.correlation_id, e.launch_id, e.op_id, e.graph_id, e.graph_node_id,
    e.grid_x, e.grid_y, e.grid_z, e.block_x, e.block_y, e.block_z,
    e.registers_per_thread, e.static_shared_bytes, e.dynamic_shared_bytes, e.shared_bytes, e.occupancy_percent,
    e.bytes, e.copy_kind,
    e.collective, e.message_in_elements, e.message_out_elements, e.dtype,
    e.group_name, e.group_size, e.group_ranks, e.sequence
FROM v1._captured_event AS e
WHERE NOT e.is_counted AND e.time_fault IS NULL;
