-- Every GPU event with its capture, vendor and class: the base of every view over GPU time.
-- Grain: row of v1._recorded_event, without the dispatches measured while hardware counters were read: kernels run
-- one at a time then, and their durations are not those of a plain run. `tracedb report --counted` puts
-- v1._timed_event in the place of this one. Without events whose times cannot be true (time_fault), too.
CREATE VIEW v1._gpu_event AS
SELECT
    e.capture_id, e.event_id, e.kind,
    e.source, e.rank, e.labels, e.vendor,
    e.device_id, e.context_id, e.queue_id, e.stream_id,
    e.name, e.class,
    e.start_ns, e.duration_ns, e.end_ns,
    e.correlation_id, e.launch_id, e.op_id, e.graph_id, e.graph_node_id,
    e.grid_x, e.grid_y, e.grid_z, e.block_x, e.block_y, e.block_z,
    e.registers_per_thread, e.static_shared_bytes, e.dynamic_shared_bytes, e.shared_bytes, e.occupancy_percent,
    e.bytes, e.copy_kind,
    e.collective, e.message_in_elements, e.message_out_elements, e.dtype,
    e.group_name, e.group_size, e.group_ranks, e.sequence
FROM v1._recorded_event AS e
WHERE NOT e.is_counted AND e.time_fault IS NULL;
