-- Which element type has an operator with these inputs? Grain: text of the types of inputs (op.input_types).
-- That of the first floating-point tensor, else of the first tensor. NULL for lists of tensors, whose types are not
-- recorded.
CREATE VIEW v1._element_type AS
SELECT
    y.input_types,
    [t FOR t IN TRY_CAST(y.input_types AS VARCHAR[]) IF v1._element_bytes(v1._plain_type(t)) IS NOT NULL] AS tensors,
    v1._short_dtype(coalesce([t FOR t IN tensors IF regexp_matches(lower(t), 'float|half|double')][1], tensors[1])) AS dtype
FROM (
    SELECT DISTINCT o.input_types
    FROM main.op AS o
    WHERE o.input_types IS NOT NULL
) AS y;
