-- A mangled name less its first component: a length, which an L may precede, and as many characters.
CREATE MACRO v1._next_component(components) AS substr(
    components,
    1 + length(regexp_extract(components, '^L?[0-9]{1,4}'))
    + coalesce(try_cast(regexp_extract(components, '^L?([0-9]{1,4})', 1) AS INTEGER), 0)
);

COMMENT ON MACRO v1._next_component IS 'A mangled name less its first component.';
