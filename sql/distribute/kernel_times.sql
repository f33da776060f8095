-- What a part sends for views over kernel names: how often each duration occurs, and the class of each name.
SELECT
    /* by e */
    e.name,
    e.collective IS NOT NULL AS is_argued,
    e.duration_ns,
    count(*) AS calls,
    n.class,
    n.rule_source,
    n.short_name
FROM v1._unclassed_event AS e /* join e */
LEFT JOIN v1._kernel_class AS n ON n.name = e.name
WHERE e.kind = 'kernel' /* filter e */
GROUP BY /* by e */ e.name, is_argued, e.duration_ns, n.class, n.rule_source, n.short_name
