-- What operator, launch, step and neighbours say about a kernel: the columns of v1.kernels that need large joins.
-- Grain: kernel, one row each (the grouping). That lets the optimiser drop the one join to this view from
-- v1.kernels where an aggregate asks for none of these columns; the last join here is grouped for the same reason.
CREATE VIEW v1._kernel_detail AS
SELECT
    e.capture_id,
    e.event_id,
    any_value(o.name) AS op_name,
    any_value(o.input_dims) AS input_dims,
    any_value(l.name) AS launch_name,
    any_value(l.process_id) AS launch_process_id,
    any_value(l.thread_id) AS launch_thread_id,
    any_value(s.step) AS step,
    any_value(s.step_index) AS step_index,
    any_value(q.clipped_duration_ns) AS clipped_duration_ns,
    any_value(v.event_id) IS NOT NULL AS overlaps_prev
FROM main.kernel_event AS e
LEFT JOIN main.op AS o ON o.capture_id = e.capture_id AND o.op_id = e.op_id
LEFT JOIN main.launch AS l ON l.capture_id = e.capture_id AND l.launch_id = e.launch_id
LEFT JOIN v1._step_kernel AS s ON s.capture_id = e.capture_id AND s.event_id = e.event_id
LEFT JOIN main.clipped_event AS q ON q.capture_id = e.capture_id AND q.event_id = e.event_id
LEFT JOIN (
    SELECT capture_id, event_id
    FROM v1._overlapping_kernel
    GROUP BY capture_id, event_id
) AS v ON v.capture_id = e.capture_id AND v.event_id = e.event_id
WHERE e.kind = 'kernel'
GROUP BY e.capture_id, e.event_id;
