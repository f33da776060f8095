-- Which class has each kernel name, and by which rule? Grain: distinct kernel name; join back by name.
-- The rules of main.kernel_rule come first and are searched for in the recorded name; then those of v1._kernel_rule,
-- searched for in the subject of the name; then 'other'. Recorded collective arguments are left to the caller.
-- The loop is inverted for speed: a pattern from a table is compiled again for every row, which takes 1 s for 500
-- names. Instead, all subjects are joined into one text, one per line, and every built-in rule, compiled once, removes
-- its lines: 0.1 s. The few user rules are joined directly; TRY makes an invalid one match nothing.
-- Names pass through a list so that the planner expects few of them: for a DISTINCT over millions of events it expects
-- millions, and DuckDB 1.4 then looks up names among the events instead of the reverse.
CREATE VIEW v1._kernel_class AS
WITH kernel_name AS (
    SELECT unnest(list(d.name)) AS name
    FROM (
        SELECT DISTINCT e.name
        FROM main.kernel_event AS e
        WHERE e.kind = 'kernel'
    ) AS d
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
),
-- A kernel's own name decides. Template arguments count only for kernels that run the functor named there.
kernel_subject AS (
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
    FROM plain_name AS p
),
subject_text AS (
    SELECT string_agg(DISTINCT s.subject, chr(10)) AS lines
    FROM kernel_subject AS s
),
-- [^x] would also match a line break.
shipped_hit AS (
    SELECT
        r.priority,
        r.class,
        unnest(regexp_extract_all(t.lines, '(?m)^.*(?:' || replace(r.pattern, '[^', '[^\n') || ').*$')) AS subject
    FROM subject_text AS t
    CROSS JOIN v1._kernel_rule AS r
),
shipped_rule AS (
    SELECT h.subject, min(h.priority) AS priority, arg_min(h.class, h.priority) AS class
    FROM shipped_hit AS h
    GROUP BY h.subject
),
user_rule AS (
    SELECT k.name, min(u.priority) AS priority, arg_min(u.class, (u.priority, u.pattern, u.class)) AS class
    FROM kernel_name AS k
    INNER JOIN main.kernel_rule AS u ON try(regexp_matches(k.name, u.pattern))
    GROUP BY k.name
)
SELECT
    s.name,
    coalesce(u.class, h.class, 'other') AS class,
    CASE
        WHEN u.name IS NOT NULL THEN 'user'
        WHEN h.subject IS NOT NULL THEN 'shipped'
        ELSE 'default'
    END AS rule_source,
    CASE WHEN u.name IS NOT NULL THEN u.priority ELSE h.priority END AS priority,
    coalesce(h.class, 'other') AS shipped_class,
    v1._short_name(s.name) AS short_name
FROM kernel_subject AS s
LEFT JOIN shipped_rule AS h ON h.subject = s.subject
LEFT JOIN user_rule AS u ON u.name = s.name;

COMMENT ON VIEW v1._kernel_class IS 'Class of each distinct kernel name and the rule that gave it. Grain: kernel name.';
COMMENT ON COLUMN v1._kernel_class.name IS 'Kernel name as recorded.';
COMMENT ON COLUMN v1._kernel_class.class IS 'Class by the user''s rules, else by the shipped ones, else other.';
COMMENT ON COLUMN v1._kernel_class.rule_source IS 'Whose rule gave the class: user, shipped, or default if none did.';
COMMENT ON COLUMN v1._kernel_class.priority IS 'Priority of that rule; NULL for default.';
COMMENT ON COLUMN v1._kernel_class.shipped_class IS 'Class without the user''s rules, to see what they changed.';
COMMENT ON COLUMN v1._kernel_class.short_name IS 'Name without return type, namespaces, template arguments and parameters.';
