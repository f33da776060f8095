-- Which class has each kernel name, and by which rule? Grain: distinct kernel name; join back by name.
-- The rules of main.kernel_rule come first and are searched for in the recorded name; then those of v1._kernel_rule,
-- searched for in the subject of the name; then 'other'. Recorded collective arguments are left to the caller.
-- The loop is inverted for speed: a pattern from a table is compiled again for every row, which takes 1 s for 500
-- names. Instead, all subjects are joined into one text, one per line, and every built-in rule, compiled once, removes
-- its lines: 0.1 s. The rules before 41 match loops and Triton kernels, whose subjects are the longest; the later rules
-- search only the lines that remain, which halves the time for 20,000 names. CASE selects the rules, because a filter
-- would copy the text for each of them. The few user rules are joined directly; TRY makes an invalid one match nothing.
CREATE VIEW v1._kernel_class AS
WITH kernel_subject AS (
    SELECT k.name, k.subject
    FROM v1._kernel_subject AS k
),
subject_text AS (
    SELECT string_agg(DISTINCT s.subject, chr(10)) AS lines
    FROM kernel_subject AS s
),
early_rule AS (
    SELECT h.subject, min(h.priority) AS priority
    FROM (
        SELECT
            r.priority,
            unnest(v1._lines_that_match(t.lines, CASE WHEN r.priority < 41 THEN r.pattern END)) AS subject
        FROM subject_text AS t
        CROSS JOIN v1._kernel_rule AS r
    ) AS h
    GROUP BY h.subject
),
rest_text AS (
    SELECT string_agg(DISTINCT s.subject, chr(10)) AS lines
    FROM kernel_subject AS s
    LEFT JOIN early_rule AS e ON e.subject = s.subject
    WHERE e.subject IS NULL
),
late_rule AS (
    SELECT h.subject, min(h.priority) AS priority
    FROM (
        SELECT
            r.priority,
            unnest(v1._lines_that_match(t.lines, CASE WHEN r.priority >= 41 THEN r.pattern END)) AS subject
        FROM rest_text AS t
        CROSS JOIN v1._kernel_rule AS r
    ) AS h
    GROUP BY h.subject
),
shipped_rule AS (
    SELECT e.subject, e.priority FROM early_rule AS e
    UNION ALL
    SELECT l.subject, l.priority FROM late_rule AS l
),
user_rule AS (
    SELECT k.name, min(u.priority) AS priority, arg_min(u.class, (u.priority, u.pattern, u.class)) AS class
    FROM kernel_subject AS k
    INNER JOIN main.kernel_rule AS u ON try(regexp_matches(k.name, u.pattern))
    GROUP BY k.name
)
SELECT
    s.name,
    coalesce(u.class, r.class, 'other') AS class,
    CASE
        WHEN u.name IS NOT NULL THEN 'user'
        WHEN h.subject IS NOT NULL THEN 'shipped'
        ELSE 'default'
    END AS rule_source,
    CASE WHEN u.name IS NOT NULL THEN u.priority ELSE h.priority END AS priority,
    coalesce(r.class, 'other') AS shipped_class,
    v1._short_name(s.name) AS short_name
FROM kernel_subject AS s
LEFT JOIN shipped_rule AS h ON h.subject = s.subject
LEFT JOIN v1._kernel_rule AS r ON r.priority = h.priority
LEFT JOIN user_rule AS u ON u.name = s.name;

COMMENT ON VIEW v1._kernel_class IS 'Class of each distinct kernel name and the rule that gave it. Grain: kernel name.';
COMMENT ON COLUMN v1._kernel_class.name IS 'Kernel name as recorded.';
COMMENT ON COLUMN v1._kernel_class.class IS 'Class by the user''s rules, else by the shipped ones, else other.';
COMMENT ON COLUMN v1._kernel_class.rule_source IS 'Whose rule gave the class: user, shipped, or default if none did.';
COMMENT ON COLUMN v1._kernel_class.priority IS 'Priority of that rule; NULL for default.';
COMMENT ON COLUMN v1._kernel_class.shipped_class IS 'Class without the user''s rules, to see what they changed.';
COMMENT ON COLUMN v1._kernel_class.short_name IS 'Name without return type, namespaces, template arguments and parameters.';
