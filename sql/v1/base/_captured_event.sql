-- Every GPU event with its capture and vendor. v1._recorded_event adds the class, which needs a join by name.
-- Grain: row of main.kernel_event, of every kind. Devices are a map per capture, which saves one join per event;
-- captures are grouped, so that the optimiser can drop the join if none of their columns is used.
CREATE VIEW v1._captured_event AS
SELECT
    e.capture_id, e.event_id, e.kind,
    c.source, c.rank, c.labels,
    c.vendors[e.device_id] AS vendor,
    e.device_id, e.context_id, e.queue_id, e.stream_id,
    e.name,
    e.start_ns,
    e.duration_ns,
    e.start_ns + e.duration_ns AS end_ns,
    e.correlation_id, e.launch_id, e.op_id, e.graph_id, e.graph_node_id,
    e.grid_x, e.grid_y, e.grid_z, e.block_x, e.block_y, e.block_z,
    e.registers_per_thread, e.static_shared_bytes, e.dynamic_shared_bytes, e.shared_bytes, e.occupancy_percent,
    e.bytes, e.copy_kind,
    e.collective, e.message_in_elements, e.message_out_elements, e.dtype,
    e.group_name, e.group_size, e.group_ranks, e.sequence,
    coalesce(e.is_counted, false) AS is_counted,
    e.time_fault
FROM main.kernel_event AS e
LEFT JOIN (
    SELECT
        p.capture_id,
        any_value(p.source) AS source,
        any_value(p.rank) AS rank,
        any_value(p.labels) AS labels,
        map_from_entries(list((d.device_id, d.vendor)) FILTER (d.device_id IS NOT NULL)) AS vendors
    FROM main.capture AS p
    LEFT JOIN (
        SELECT capture_id, device_id, min(vendor) AS vendor
        FROM main.device
        GROUP BY capture_id, device_id
    ) AS d ON d.capture_id = p.capture_id
    GROUP BY p.capture_id
) AS c ON c.capture_id = e.capture_id;
