-- Folded stacks for flame graphs and speedscope: frames, operator and kernel with semicolons between, then the time in ns.
-- In: temp table answer, the rows of kernel_stacks. Out: line. Times of all captures of the answer are added up.
SELECT
    concat_ws(
        ';',
        a.stage,
        a.stack,
        regexp_replace(a.op_name, '[;\r\n]', ' ', 'g'),
        regexp_replace(a.kernel, '[;\r\n]', ' ', 'g')
    ) || ' ' || sum(a.total_ns)::BIGINT AS line
FROM temp.answer AS a
GROUP BY a.stage, a.stack, a.op_name, a.kernel
ORDER BY line;
