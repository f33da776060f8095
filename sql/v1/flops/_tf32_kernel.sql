-- Which kernels multiply fp32 numbers as TF32? Grain: kernel name. cuBLAS and CUTLASS say tf32 or s1688; nvjet kernels
-- use the tensor cores only, which take fp32 as TF32.
CREATE VIEW v1._tf32_kernel AS
SELECT DISTINCT e.name
FROM main.kernel_event AS e
WHERE e.kind = 'kernel' AND regexp_matches(e.name, 'tf32|_s1688|nvjet_(sm[0-9]+_)?s');
