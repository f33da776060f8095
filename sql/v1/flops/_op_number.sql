-- Which of the distinct calls (v1._op_spelling) is each call of an operator? Grain: operator instance.
-- A left join, although each has its row: the planner expects an inner one to lose nearly all operators.
CREATE VIEW v1._op_number AS
SELECT o.capture_id, o.op_id, s.signature_no, s.spelling_no
FROM main.op AS o
LEFT JOIN v1._op_spelling AS s
    ON s.name = o.name
    AND s.input_dims IS NOT DISTINCT FROM o.input_dims
    AND s.input_types IS NOT DISTINCT FROM o.input_types
    AND s.concrete_inputs IS NOT DISTINCT FROM o.concrete_inputs;
