-- Which distinct calls of operators are there? Grain: name × shapes × types × scalars as recorded, numbered in their order.
-- A model repeats few of them, so that views over millions of calls join and group by numbers, and read the texts of the
-- few afterwards. spelling_no numbers them without scalars. substr, which leaves a text as it is, hides the statistics of
-- the columns from the planner: it then expects as many rows as there are names. With them it would expect about as many
-- as there are operators, and look up these among the operators instead of the reverse.
CREATE VIEW v1._op_spelling AS
WITH spelt AS (
    SELECT
        o.name,
        substr(o.input_dims, 1) AS input_dims,
        substr(o.input_types, 1) AS input_types,
        substr(o.concrete_inputs, 1) AS concrete_inputs
    FROM main.op AS o
    GROUP BY ALL
)
SELECT
    row_number() OVER (ORDER BY s.name, s.input_dims, s.input_types, s.concrete_inputs) AS signature_no,
    dense_rank() OVER (ORDER BY s.name, s.input_dims, s.input_types) AS spelling_no,
    s.name, s.input_dims, s.input_types, s.concrete_inputs
FROM spelt AS s;
