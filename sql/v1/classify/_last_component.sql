-- A mangled name (Itanium C++ ABI) from the last component of its qualified name on. A name is a row of components, each
-- with its length in front (2at6native6kernel); every step drops one as long as another follows, at most 12.
-- The next rest stands in a list, not in a CASE, because a macro's text is planned anew at each use.
CREATE MACRO v1._last_component(name) AS list_reduce(
    list_prepend(regexp_replace(name, '^_Z(?:N[rVK]*)?(?:St)?', ''), range(12)::VARCHAR[]),
    LAMBDA rest, step: list_filter([v1._next_component(rest), rest], LAMBDA part: regexp_matches(part, '^L?[0-9]'))[1]
);

COMMENT ON MACRO v1._last_component IS 'A mangled name from the last component of its qualified name on.';
