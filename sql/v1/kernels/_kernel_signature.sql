-- What identifies a unique kernel, as canonical JSON text: fixed key order, NULL written as null.
CREATE MACRO v1._kernel_signature(
    name, grid_x, grid_y, grid_z, block_x, block_y, block_z,
    static_shared_bytes, dynamic_shared_bytes, shared_bytes, dtype, bytes, op_name, input_dims
) AS
to_json({
    'name': name,
    'grid': [grid_x, grid_y, grid_z],
    'block': [block_x, block_y, block_z],
    'static_shared_bytes': static_shared_bytes,
    'dynamic_shared_bytes': dynamic_shared_bytes,
    'shared_bytes': shared_bytes,
    'dtype': dtype,
    'bytes': bytes,
    'op_name': op_name,
    'input_dims': input_dims
})::VARCHAR;

COMMENT ON MACRO v1._kernel_signature IS 'Signature of a launch as canonical JSON text.';
