-- How many elements has a tensor of these sizes? The product; 1 for a scalar, which has no sizes.
-- sizes: a list of whole numbers. NULL if it, or one of them, is not known.
CREATE MACRO v1._element_count(sizes) AS
CASE
    WHEN len(sizes) = 0 THEN 1::DOUBLE
    WHEN list_aggregate(sizes, 'count') = len(sizes) THEN list_product(sizes)
END;

COMMENT ON MACRO v1._element_count IS 'Number of elements of a tensor of the given sizes; NULL if a size is not known.';
