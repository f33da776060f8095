-- The function's own name in a mangled one (Itanium C++ ABI): the last component before template arguments and
-- parameters. A name is a row of components, each with its length in front (2at6native6kernel); a step of the loop
-- drops one as long as another follows, up to 12. Empty or NULL for a name of another form.
-- LAMBDA part stands for the last component, which would be planned anew at each use.
CREATE MACRO v1._mangled_base(name) AS list_transform(
    [v1._last_component(name)],
    LAMBDA part: substr(
        regexp_extract(part, '^L?[0-9]{1,4}([^0-9].*)$', 1, 's'),
        1,
        try_cast(regexp_extract(part, '^L?([0-9]{1,4})', 1) AS INTEGER)
    )
)[1];

COMMENT ON MACRO v1._mangled_base IS 'Unqualified name of the function that a mangled name (_Z…) is of.';
