-- Which distinct calls are there of operators with a formula? Grain: name × shapes × types × scalars as recorded.
-- Each distinct text is parsed once, because a model repeats few of them. A text that is not a list of lists of numbers
-- gives NULL, and so does a list of tensors in it.
CREATE VIEW v1._op_signature AS
WITH spelt AS (
    SELECT DISTINCT o.name, o.input_dims, o.input_types, o.concrete_inputs
    FROM main.op AS o
    WHERE o.name IN (SELECT f.name FROM v1._op_formula AS f) AND o.input_dims IS NOT NULL
),
listed AS (
    SELECT
        s.*,
        TRY_CAST(s.input_dims AS BIGINT[][]) AS sizes,
        TRY_CAST(s.input_types AS VARCHAR[]) AS types,
        TRY_CAST(s.concrete_inputs AS VARCHAR[]) AS scalars
    FROM spelt AS s
)
SELECT
    d.name, d.input_dims, d.input_types, d.concrete_inputs,
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
