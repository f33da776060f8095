-- Which distinct calls are there of operators with a formula? Grain: row of v1._op_spelling with shapes.
-- A text that is not a list of lists of numbers gives NULL, and so does a list of tensors in it.
CREATE VIEW v1._op_signature AS
WITH listed AS (
    SELECT
        s.*,
        TRY_CAST(s.input_dims AS BIGINT[][]) AS sizes,
        TRY_CAST(s.input_types AS VARCHAR[]) AS types,
        TRY_CAST(s.concrete_inputs AS VARCHAR[]) AS scalars
    FROM v1._op_spelling AS s
    WHERE s.name IN (SELECT f.name FROM v1._op_formula AS f) AND s.input_dims IS NOT NULL
)
SELECT
    d.signature_no, d.name, d.input_types,
    f.family,
    d.sizes,
    d.types,
    d.scalars,
    f.flag,
    d.scalars[f.flag] AS flag_text,
    d.sizes[f.x] AS x, d.sizes[f.y] AS y, d.sizes[f.z] AS z,
    d.types[f.x] AS x_type, d.types[f.y] AS y_type, d.types[f.z] AS z_type
FROM listed AS d
INNER JOIN v1._op_formula AS f ON f.name = d.name;
