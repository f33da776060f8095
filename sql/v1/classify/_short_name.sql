-- What is a kernel called, without return type, namespaces, template arguments and parameters? As the shortName of nsys,
-- whichever demangler printed the name, or none did.
-- Method: brackets go as a whole, four levels at a time: parentheses first, which are balanced whatever stands in them,
-- then [lambda …] and {lambda …}, then angle brackets, once no operator (->, operator<) can be taken for one. What is
-- never closed (a name that was cut, or nested deeper) ends the name. The last word without its namespaces is left.
-- A name without brackets, colons and return type stays: Triton's, Tensile's, cuBLAS's. So do copies and memsets.
-- list_filter stands for nullif(…, ''), which plans its argument twice: 6 ms of each query with class or short name.
CREATE MACRO v1._short_name(name) AS coalesce(list_filter([CASE
    WHEN starts_with(name, '_Z') THEN v1._mangled_base(name)
    WHEN NOT regexp_matches(name, '[<(:]|^void |\.kd$| \[clone ') OR regexp_matches(name, '^(?:\[|Mem(?:cpy|set)\b)')
        THEN name
    ELSE replace(regexp_extract(v1._unbracketed(name), '([^\s:]+)\s*$', 1), 'operator_call', 'operator()')
END], LAMBDA short: short <> '')[1], name);

COMMENT ON MACRO v1._short_name IS 'Name of a kernel without return type, namespaces, template arguments and parameters, as the shortName of nsys.';
