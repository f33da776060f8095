-- Which part of each kernel name do the built-in rules search? Grain: distinct kernel name.
-- HAVING, which is always true, makes the planner of DuckDB 1.4 expect fewer names than events, of which it otherwise
-- expects as many, and then looks up names among the events instead of the reverse.
CREATE VIEW v1._kernel_subject AS
WITH kernel_name AS (
    SELECT e.name
    FROM main.kernel_event AS e
    WHERE e.kind = 'kernel'
    GROUP BY e.name
    HAVING count(*) > 0
),
-- The name without return type, clone suffix, anonymous namespaces, and words that contain "gemm" but mean none.
-- Mangled names also lose everything that could be read as a word: the file in NVCC's anonymous namespaces, parameter
-- types, and two size_t (mm) after a substitution (S_, T_).
plain_name AS (
    SELECT
        k.name,
        lower(regexp_replace(regexp_replace(regexp_replace(
            replace(k.name, chr(10), ' '),
            '^(?:void |static |std::enable_if.*?::type )+|(?:\.kd)?(?: \[clone .*\])?$', '', 'g'),
            '\(anonymous namespace\)::|<unnamed>::|\{anonymous\}::|(?i:fbgemm)|tensor_layout(?:::|4)gemm'
            || '|_GLOBAL__N__[0-9a-f]+_[0-9]+_[0-9A-Za-z_]+?_cu_[0-9a-f]{8}'
            || '|IndexBoundsCheck|PhiloxCudaState|reduced_divisor|(?:S[0-9A-Z]*|T[0-9]*)_mm(?:$|[0-9])', '', 'g'),
            '[Gg]emma([0-9A-Z_]|rms|norm|fused|$)', '\1', 'g')) AS plain
    FROM kernel_name AS k
)
-- A kernel's own name decides. Template arguments count only for kernels that run the functor named there.
SELECT
    p.name,
    CASE
        WHEN regexp_matches(
            p.plain,
            '^(?:[a-z0-9_]*::)*(?:[a-z_]*elementwise_kernel[a-z_]*|multi_tensor_apply_kernel|kernel[0-9]?'
            || '|device_kernel|kentry|_kernel_agent|kernelpointwiseapply[1-4]|static_kernel|trampoline_kernel'
            || '|eigenmetakernel)<')
            THEN p.plain
        ELSE regexp_extract(p.plain, '^[^<(]*')
    END AS subject
FROM plain_name AS p;
