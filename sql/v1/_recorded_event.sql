-- Every GPU event with its capture, vendor and class, also dispatches measured while hardware counters were read.
-- Grain: row of main.kernel_event, of every kind. Class: copies and memsets are 'copy', graph replays 'graph'; a
-- kernel's is the user's rule if one matched its name, else collective if it was recorded with collective
-- arguments, else the shipped rule's.
-- Why operator, launch and step are not here: they are joins of millions to millions, which a report pays for only
-- when it asks for them (hook join in ../README.md). Devices come as a map of their capture, so that there is one join
-- less for every event; it stands last and grouped, so that the optimiser can drop it.
CREATE VIEW v1._recorded_event AS
SELECT
    e.capture_id, e.event_id, e.kind,
    c.source, c.rank, c.labels,
    c.vendors[e.device_id] AS vendor,
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
    e.correlation_id, e.launch_id, e.op_id, e.graph_id, e.graph_node_id,
    e.grid_x, e.grid_y, e.grid_z, e.block_x, e.block_y, e.block_z,
    e.registers_per_thread, e.static_shared_bytes, e.dynamic_shared_bytes, e.shared_bytes, e.occupancy_percent,
    e.bytes, e.copy_kind,
    e.collective, e.message_in_elements, e.message_out_elements, e.dtype,
    e.group_name, e.group_size, e.group_ranks, e.sequence,
    coalesce(e.is_counted, false) AS is_counted
FROM main.kernel_event AS e
LEFT JOIN v1._kernel_class AS n ON n.name = e.name
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
