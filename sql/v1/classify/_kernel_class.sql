-- Which class has each kernel name, and by which rule? Grain: distinct kernel name; join back by name.
-- The rules of main.kernel_rule come first and are searched for in the recorded name; then those of v1._kernel_rule,
-- searched for in the subject of the name; then 'other'. Recorded collective arguments are left to the caller.
-- The few user rules are one list, in their order, of which each name takes the first that matches; TRY makes an invalid
-- one match nothing. So no name is joined or copied: there may be tens of thousands.
CREATE VIEW v1._kernel_class AS
WITH user_rules AS (
    SELECT list({'priority': u.priority, 'pattern': u.pattern, 'class': u.class} ORDER BY u.priority, u.pattern, u.class) AS rules
    FROM main.kernel_rule AS u
),
matched AS (
    SELECT
        k.name,
        v1._shipped_priority(k.subject) AS shipped_priority,
        list_filter(u.rules, LAMBDA rule: try(regexp_matches(k.name, rule.pattern)))[1] AS user_rule
    FROM v1._kernel_subject AS k
    CROSS JOIN user_rules AS u
)
SELECT
    m.name,
    coalesce(m.user_rule.class, r.class, 'other') AS class,
    CASE
        WHEN m.user_rule IS NOT NULL THEN 'user'
        WHEN m.shipped_priority IS NOT NULL THEN 'shipped'
        ELSE 'default'
    END AS rule_source,
    CASE WHEN m.user_rule IS NOT NULL THEN m.user_rule.priority ELSE m.shipped_priority END AS priority,
    coalesce(r.class, 'other') AS shipped_class,
    v1._short_name(m.name) AS short_name
FROM matched AS m
LEFT JOIN v1._kernel_rule AS r ON r.priority = m.shipped_priority;

COMMENT ON VIEW v1._kernel_class IS 'Class of each distinct kernel name and the rule that gave it. Grain: kernel name.';
COMMENT ON COLUMN v1._kernel_class.name IS 'Kernel name as recorded.';
COMMENT ON COLUMN v1._kernel_class.class IS 'Class by the user''s rules, else by the shipped ones, else other.';
COMMENT ON COLUMN v1._kernel_class.rule_source IS 'Whose rule gave the class: user, shipped, or default if none did.';
COMMENT ON COLUMN v1._kernel_class.priority IS 'Priority of that rule; NULL for default.';
COMMENT ON COLUMN v1._kernel_class.shipped_class IS 'Class without the user''s rules, to see what they changed.';
COMMENT ON COLUMN v1._kernel_class.short_name IS 'Name without return type, namespaces, template arguments and parameters.';
