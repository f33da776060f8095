-- When and how long did each call of a unique kernel run?
-- Grain: GPU event of v1.unique_kernels, with the signature_key that groups it there.
-- The key is made once for each distinct signature, in numbers of names and of operators with shapes, and found by them.
CREATE VIEW v1.unique_kernel_calls AS
WITH names AS (
    SELECT e.name, row_number() OVER (ORDER BY e.name) AS name_no
    FROM main.kernel_event AS e
    GROUP BY e.name
),
signatures AS (
    SELECT
        n.name_no, o.shape_no,
        e.grid_x, e.grid_y, e.grid_z, e.block_x, e.block_y, e.block_z,
        e.static_shared_bytes, e.dynamic_shared_bytes, e.shared_bytes, e.dtype, e.bytes
    FROM main.kernel_event AS e
    INNER JOIN names AS n ON n.name = e.name
    LEFT JOIN v1._shaped_op AS o ON o.capture_id = e.capture_id AND o.op_id = e.op_id
    GROUP BY ALL
    HAVING count(*) > 0
),
keys AS (
    SELECT
        d.name_no, d.shape_no,
        d.grid_x, d.grid_y, d.grid_z, d.block_x, d.block_y, d.block_z,
        d.static_shared_bytes, d.dynamic_shared_bytes, d.shared_bytes, d.dtype, d.bytes,
        left(md5(v1._kernel_signature(
            n.name, d.grid_x, d.grid_y, d.grid_z, d.block_x, d.block_y, d.block_z,
            d.static_shared_bytes, d.dynamic_shared_bytes, d.shared_bytes, d.dtype, d.bytes, t.name, t.input_dims
        )), 12) AS signature_key
    FROM signatures AS d
    INNER JOIN names AS n ON n.name_no = d.name_no
    LEFT JOIN v1._op_shape AS t ON t.shape_no = d.shape_no
)
SELECT
    /* by e */
    e.capture_id, e.event_id, e.source, e.rank, e.labels, e.device_id, e.stream_id,
    k.signature_key,
    e.name, e.class,
    t.name AS op_name,
    t.input_dims,
    s.step,
    e.start_ns,
    e.duration_ns
FROM v1._gpu_event AS e /* join e */
LEFT JOIN names AS n ON n.name = e.name
LEFT JOIN v1._shaped_op AS o ON o.capture_id = e.capture_id AND o.op_id = e.op_id
LEFT JOIN v1._op_shape AS t ON t.shape_no = o.shape_no
LEFT JOIN keys AS k
    ON k.name_no = n.name_no
    AND k.shape_no IS NOT DISTINCT FROM o.shape_no
    AND k.grid_x IS NOT DISTINCT FROM e.grid_x
    AND k.grid_y IS NOT DISTINCT FROM e.grid_y
    AND k.grid_z IS NOT DISTINCT FROM e.grid_z
    AND k.block_x IS NOT DISTINCT FROM e.block_x
    AND k.block_y IS NOT DISTINCT FROM e.block_y
    AND k.block_z IS NOT DISTINCT FROM e.block_z
    AND k.static_shared_bytes IS NOT DISTINCT FROM e.static_shared_bytes
    AND k.dynamic_shared_bytes IS NOT DISTINCT FROM e.dynamic_shared_bytes
    AND k.shared_bytes IS NOT DISTINCT FROM e.shared_bytes
    AND k.dtype IS NOT DISTINCT FROM e.dtype
    AND k.bytes IS NOT DISTINCT FROM e.bytes
LEFT JOIN v1._step_kernel AS s ON s.capture_id = e.capture_id AND s.event_id = e.event_id
WHERE e.kind IN ('kernel', 'memcpy', 'memset') /* filter e */;

COMMENT ON VIEW v1.unique_kernel_calls IS 'Every call of the unique kernels with its duration. Grain: GPU event.';
COMMENT ON COLUMN v1.unique_kernel_calls.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN v1.unique_kernel_calls.event_id IS 'Number of the event within the capture (kernel_event.event_id). [-]';
COMMENT ON COLUMN v1.unique_kernel_calls.source IS 'Profiler or format of the capture.';
COMMENT ON COLUMN v1.unique_kernel_calls.rank IS 'Rank of the capture; NULL if unknown. [-]';
COMMENT ON COLUMN v1.unique_kernel_calls.labels IS 'Labels of the capture.';
COMMENT ON COLUMN v1.unique_kernel_calls.device_id IS 'Device number within the capture. [-]';
COMMENT ON COLUMN v1.unique_kernel_calls.stream_id IS 'Stream number; unique only per device and context. [-]';
COMMENT ON COLUMN v1.unique_kernel_calls.signature_key IS 'Signature (unique_kernels.signature_key).';
COMMENT ON COLUMN v1.unique_kernel_calls.name IS 'Name as recorded.';
COMMENT ON COLUMN v1.unique_kernel_calls.class IS 'Class of the kernel; copy for copies and memsets.';
COMMENT ON COLUMN v1.unique_kernel_calls.op_name IS 'Innermost framework operator that launched the kernel; NULL if none or not recorded.';
COMMENT ON COLUMN v1.unique_kernel_calls.input_dims IS 'Input shapes of that operator, as JSON text as recorded; NULL if not recorded.';
COMMENT ON COLUMN v1.unique_kernel_calls.step IS 'Marked or selected step that contains the call; NULL outside steps. [-]';
COMMENT ON COLUMN v1.unique_kernel_calls.start_ns IS 'Start on the device, on the capture''s clock. [ns]';
COMMENT ON COLUMN v1.unique_kernel_calls.duration_ns IS 'Duration. [ns]';
