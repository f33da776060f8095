-- The GPU events of a capture, as events of a trace, each lane in time order.
-- In:  as in trace_cpu.sql; the same 13 columns first. flow: the event's own number, if its call is in the trace.
--      Grid and block of AMD follow the torch profiler: hipExtModuleLaunchKernel takes the global size.
SELECT
    CASE e.kind WHEN 'memcpy' THEN 'gpu_memcpy' WHEN 'memset' THEN 'gpu_memset' WHEN 'graph' THEN 'gpu_graph' ELSE 'kernel' END
        AS category,
    e.name,
    p.pid,
    t.tid,
    t.number AS track_number,
    s.start_ns,
    s.end_ns,
    format('{}.{:03d}', s.start_ns // 1000, s.start_ns % 1000) AS ts,
    format('{}.{:03d}', (s.end_ns - s.start_ns) // 1000, (s.end_ns - s.start_ns) % 1000) AS dur,
    NULL::BIGINT[] AS flows,
    CASE WHEN c.n IS NOT NULL THEN s.n END AS flow,
    false AS is_open,
    false AS is_mark,
    p.first_op + e.op_id AS "External id",
    e.device_id AS "device",
    e.context_id AS "context",
    e.stream_id AS "stream",
    e.queue_id AS "queue",
    e.correlation_id AS "correlation",
    e.class AS "class",
    e.registers_per_thread AS "registers per thread",
    coalesce(e.shared_bytes, e.static_shared_bytes + e.dynamic_shared_bytes) AS "shared memory",
    CASE WHEN e.grid_x IS NOT NULL THEN [
        e.grid_x * x.threads_x, e.grid_y * x.threads_y, e.grid_z * x.threads_z
    ] END AS "grid",
    CASE WHEN e.block_x IS NOT NULL THEN [e.block_x, e.block_y, e.block_z] END AS "block",
    e.occupancy_percent AS "est. achieved occupancy %",
    e.bytes AS "bytes",
    e.graph_id AS "graph id",
    e.graph_node_id AS "graph node id",
    e.collective AS "Collective name",
    e.message_in_elements AS "In msg nelems",
    e.message_out_elements AS "Out msg nelems",
    e.dtype AS "dtype",
    e.group_size AS "Group size",
    e.group_name AS "Process Group Name",
    e.group_ranks AS "Process Group Ranks",
    e.sequence AS "Seq"
FROM temp.trace_slice AS s
INNER JOIN temp.trace_process AS p ON p.capture_id = s.capture_id
LEFT JOIN temp.trace_link AS k ON k.n = s.n
INNER JOIN temp.trace_lane AS t ON t.track = s.track AND t.lane = coalesce(k.lane, 0)
INNER JOIN v1._recorded_event AS e ON e.capture_id = s.capture_id AND e.event_id = s.row_id
LEFT JOIN temp.trace_slice AS c ON c.capture_id = s.capture_id AND c.kind = 'launch' AND c.row_id = e.launch_id
LEFT JOIN main.launch AS l ON l.capture_id = e.capture_id AND l.launch_id = e.launch_id
LEFT JOIN LATERAL (
    SELECT
        CASE WHEN e.vendor = 'AMD' AND l.name = 'hipExtModuleLaunchKernel' THEN e.block_x ELSE 1 END AS threads_x,
        CASE WHEN e.vendor = 'AMD' AND l.name = 'hipExtModuleLaunchKernel' THEN e.block_y ELSE 1 END AS threads_y,
        CASE WHEN e.vendor = 'AMD' AND l.name = 'hipExtModuleLaunchKernel' THEN e.block_z ELSE 1 END AS threads_z
) AS x ON true
WHERE s.capture_id = getvariable('trace_capture') AND s.kind = 'gpu'
ORDER BY t.number, s.start_ns, s.start_ns = s.end_ns DESC, s.n;
