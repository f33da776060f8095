-- Which tier of kernels does an event belong to, by its kind, name and class? 1 memory operations, 2 matrix products,
-- 3 the rest. The substrings are those by which classify_kernels of piep_kernel_execution_graph sorts names; class
-- matmul adds the libraries that its list does not know (nvjet, Tensile, Triton), and copies by the ROCm runtime are
-- memory operations. A kernel that merely copies tensors (class copy) is tier 3 there and here.
CREATE MACRO v1._kernel_tier(kind, name, class) AS
CASE
    WHEN kind IN ('memcpy', 'memset') OR regexp_matches(name, '(?i)memcpy|memset|memmove') OR v1._is_runtime_copy(name)
        THEN 1
    WHEN class = 'matmul'
        OR regexp_matches(name, '(?i)gemm|gemv|splitkreduce|sm80_xmma|maxwell_sgemm|volta_|turing_|ampere_')
        THEN 2
    ELSE 3
END;

COMMENT ON MACRO v1._kernel_tier IS 'Tier of a GPU event: 1 memory operation, 2 matrix product, 3 the rest.';
