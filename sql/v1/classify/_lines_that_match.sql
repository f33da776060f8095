-- The lines of a text that a rule of v1._kernel_rule matches. [^x] would also match a line break.
CREATE MACRO v1._lines_that_match(lines, pattern) AS
    regexp_extract_all(lines, '(?m)^.*(?:' || replace(pattern, '[^', '[^\n') || ').*$');

COMMENT ON MACRO v1._lines_that_match IS 'Lines of a text that contain a match of the pattern of a shipped rule.';
