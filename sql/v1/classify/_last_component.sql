-- A mangled name (Itanium C++ ABI) from the last component of its qualified name on. A name is a row of components, each
-- with its length in front (2at6native6kernel); every step drops one as long as another follows, at most 12.
CREATE MACRO v1._last_component(name) AS list_reduce(
    list_prepend(regexp_replace(name, '^_Z(?:N[rVK]*)?(?:St)?', ''), range(12)::VARCHAR[]),
    LAMBDA rest, step:
        CASE WHEN regexp_matches(v1._next_component(rest), '^L?[0-9]') THEN v1._next_component(rest) ELSE rest END
);

COMMENT ON MACRO v1._last_component IS 'A mangled name from the last component of its qualified name on.';
