-- How many bytes has a tensor of these sizes and of this element type, as PyTorch spells it? NULL if not known.
CREATE MACRO v1._tensor_bytes(sizes, torch_type) AS
v1._element_count(sizes) * v1._element_bytes(v1._plain_type(torch_type));

COMMENT ON MACRO v1._tensor_bytes IS 'Size of a tensor in bytes; NULL if its sizes or its type are not known.';
