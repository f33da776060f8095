-- Which operator does each kernel of a graph replay come from?
-- Grain: GPU event replayed by a graph. The call that launches a graph belongs to no operator of the model, so each event
-- is linked to the launch that was recorded into the graph, or to the same kernel of a run without the graph, by names or
-- by order
-- (main.graph_link, worked out at load). The operator may be in another capture: op_capture_id. An event without such a
-- link has match_rule none, and no operator.
CREATE VIEW v1.graph_attribution AS
SELECT
    e.capture_id, e.rank, e.labels, e.device_id, e.stream_id,
    e.event_id, e.launch_id, e.graph_id, e.graph_node_id,
    e.name, e.class, e.start_ns, e.duration_ns,
    coalesce(g.rule, 'none') AS match_rule,
    g.origin AS matched_to,
    g.origin_capture_id AS op_capture_id,
    g.op_id,
    o.name AS op_name,
    o.input_dims,
    o.input_types,
    f.module_path,
    e.short_name
FROM v1._gpu_event AS e /* join e */
LEFT JOIN main.launch AS l ON l.capture_id = e.capture_id AND l.launch_id = e.launch_id
LEFT JOIN main.graph_link AS g ON g.capture_id = e.capture_id AND g.event_id = e.event_id
LEFT JOIN main.op AS o ON o.capture_id = g.origin_capture_id AND o.op_id = g.op_id
LEFT JOIN v1._op_frame AS w ON w.capture_id = o.capture_id AND w.op_id = o.op_id
LEFT JOIN main.frame AS f ON f.capture_id = w.capture_id AND f.frame_id = w.frame_id
WHERE
    e.kind <> 'graph'
    AND (contains(l.name, 'GraphLaunch') OR (e.graph_node_id IS NOT NULL AND e.launch_id IS NULL)) /* filter e */;

COMMENT ON VIEW v1.graph_attribution IS 'The operator that each GPU event of a graph replay comes from. Grain: GPU event replayed by a graph.';
COMMENT ON COLUMN v1.graph_attribution.capture_id IS 'Capture of the replay. [-]';
COMMENT ON COLUMN v1.graph_attribution.rank IS 'Rank of the capture; NULL if unknown. [-]';
COMMENT ON COLUMN v1.graph_attribution.labels IS 'Labels of the capture: sweep, threads, channels and others.';
COMMENT ON COLUMN v1.graph_attribution.device_id IS 'Device number within the capture. [-]';
COMMENT ON COLUMN v1.graph_attribution.stream_id IS 'Stream number; unique only per device and context. [-]';
COMMENT ON COLUMN v1.graph_attribution.event_id IS 'Number of the event within the capture (kernel_event.event_id). [-]';
COMMENT ON COLUMN v1.graph_attribution.launch_id IS 'The call that launched the graph (launch.launch_id); NULL if not recorded. [-]';
COMMENT ON COLUMN v1.graph_attribution.graph_id IS 'CUDA or HIP graph, where recorded. [-]';
COMMENT ON COLUMN v1.graph_attribution.graph_node_id IS 'Node of the graph, where recorded. [-]';
COMMENT ON COLUMN v1.graph_attribution.name IS 'Kernel name as recorded.';
COMMENT ON COLUMN v1.graph_attribution.class IS 'Class of the kernel: matmul, collective, elementwise …';
COMMENT ON COLUMN v1.graph_attribution.start_ns IS 'Start on the device, on the capture''s clock. [ns]';
COMMENT ON COLUMN v1.graph_attribution.duration_ns IS 'Duration. [ns]';
COMMENT ON COLUMN v1.graph_attribution.match_rule IS 'How its origin was found: node_id (both are of the same graph node), aligned (by the order of kernel names, or of launches; see matched_to), none (not found).';
COMMENT ON COLUMN v1.graph_attribution.matched_to IS 'captured launch (a call that was recorded into the graph); captured launch in order (such a call that names no kernel, found by its place, where stream capture and replay have the same kinds of work in the same order); eager kernel (the same kernel in a run without the graph); NULL if not found.';
COMMENT ON COLUMN v1.graph_attribution.op_capture_id IS 'Capture that holds the origin and its operator; NULL if not found. [-]';
COMMENT ON COLUMN v1.graph_attribution.op_id IS 'Operator of the origin (op.op_id in op_capture_id); NULL if none. [-]';
COMMENT ON COLUMN v1.graph_attribution.op_name IS 'Name of that operator, such as aten::mm.';
COMMENT ON COLUMN v1.graph_attribution.input_dims IS 'Its input shapes, as JSON text as recorded; NULL if not recorded.';
COMMENT ON COLUMN v1.graph_attribution.input_types IS 'Its input element types, as JSON text as recorded; NULL if not recorded.';
COMMENT ON COLUMN v1.graph_attribution.module_path IS 'Modules around that operator, as in frame.module_path; NULL outside of modules or if no stacks were recorded.';
COMMENT ON COLUMN v1.graph_attribution.short_name IS 'Kernel name without return type, namespaces, template arguments and parameters, like nsys''s shortName.';
