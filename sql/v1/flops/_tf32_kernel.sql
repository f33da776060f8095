-- Which kernels multiply fp32 numbers as TF32? Grain: kernel name. cuBLAS and CUTLASS say tf32 or s1688; nvjet kernels
-- use the tensor cores only, which take fp32 as TF32. The condition asks for the count, which always exceeds 0, so that
-- DuckDB does not match the pattern against each of millions of events before it groups them.
CREATE VIEW v1._tf32_kernel AS
SELECT e.name
FROM main.kernel_event AS e
WHERE e.kind = 'kernel'
GROUP BY e.name
HAVING CASE WHEN count(*) > 0 THEN regexp_matches(e.name, 'tf32|_s1688|nvjet_(sm[0-9]+_)?s') END;
