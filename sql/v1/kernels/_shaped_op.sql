-- Which of the distinct operators with shapes (v1._op_shape) is each operator? Grain: operator instance. An inner join,
-- although each has its row: the planner expects few rows of it, and looks up operators for events, not the reverse.
CREATE VIEW v1._shaped_op AS
SELECT o.capture_id, o.op_id, s.shape_no
FROM main.op AS o
INNER JOIN v1._op_shape AS s ON s.name = o.name AND s.input_dims IS NOT DISTINCT FROM o.input_dims;
