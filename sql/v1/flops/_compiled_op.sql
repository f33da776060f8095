-- Which operators that launched GPU work run inside a function that torch.compile made, forward or backward?
-- Grain: launching operator inside the autograd node of such a function (CompiledFunction).
CREATE VIEW v1._compiled_op AS
WITH RECURSIVE climb AS (
    SELECT o.capture_id, o.op_id, o.parent_op_id, o.name
    FROM main.op AS o
    WHERE (o.capture_id, o.op_id) IN (SELECT (e.capture_id, e.op_id) FROM main.kernel_event AS e WHERE e.op_id IS NOT NULL)
        AND o.capture_id IN (SELECT c.capture_id FROM main.op AS c WHERE contains(c.name, 'CompiledFunction'))
    UNION
    SELECT c.capture_id, c.op_id, o.parent_op_id, o.name
    FROM climb AS c
    INNER JOIN main.op AS o ON o.capture_id = c.capture_id AND o.op_id = c.parent_op_id
    WHERE NOT contains(c.name, 'CompiledFunction')
)
SELECT c.capture_id, c.op_id, contains(c.name, 'CompiledFunctionBackward') AS is_backward
FROM climb AS c
WHERE contains(c.name, 'CompiledFunction');
