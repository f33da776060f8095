-- How long is the result of broadcasting up to three tensors, along the n-th dimension from the last?
CREATE MACRO v1._broadcast_size(sizes, n) AS
coalesce(greatest(sizes[1][-n], sizes[2][-n], sizes[3][-n]), 1);

COMMENT ON MACRO v1._broadcast_size IS 'Length of broadcast tensors along the n-th dimension from the last.';
