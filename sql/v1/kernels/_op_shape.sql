-- Which distinct operators with their input shapes are there? Grain: name × shapes as recorded, numbered in their order.
-- substr hides the statistics of the column from the planner, as in v1._op_spelling.
CREATE VIEW v1._op_shape AS
WITH spelt AS (
    SELECT o.name, substr(o.input_dims, 1) AS input_dims
    FROM main.op AS o
    GROUP BY ALL
)
SELECT row_number() OVER (ORDER BY s.name, s.input_dims) AS shape_no, s.name, s.input_dims
FROM spelt AS s;
