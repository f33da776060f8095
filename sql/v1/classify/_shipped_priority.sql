-- Which shipped rule applies to the subject of a kernel name? The priority of the first that matches; NULL if none does.
-- Installing the views writes the hook as a CASE with a branch for each rule (storage/views.py), with the same result:
-- DuckDB compiles a constant pattern once, but a pattern from a table again for every name.
CREATE MACRO v1._shipped_priority(subject) AS /* case */ (
    SELECT min(r.priority)
    FROM v1._kernel_rule AS r
    WHERE regexp_matches(subject, r.pattern)
) /* end case */;

COMMENT ON MACRO v1._shipped_priority IS 'Priority of the first shipped rule that matches the subject of a kernel name; NULL if none does.';
