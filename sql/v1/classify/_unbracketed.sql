-- A kernel's name without clone suffix, anonymous namespaces, and everything in brackets; see v1._short_name.
CREATE MACRO v1._unbracketed(name) AS regexp_replace(
    regexp_replace(regexp_replace(regexp_replace(
        regexp_replace(regexp_replace(
            regexp_replace(regexp_replace(
                regexp_replace(regexp_replace(regexp_replace(
                    regexp_replace(name, '(?:\.kd)?(?: \[clone [^\]]*\])*$', ''),
                    '(?:\(anonymous namespace\)|<unnamed>|\{anonymous\})::', '', 'g'),
                    '\boperator ?\(\)', 'operator_call', 'g'),
                    '\boperator ?(?:<=>|<<=?|>>=?|->\*?|[<>]=?)|->', 'operator_sign', 'g'),
                '\((?:[^()]|\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))*\)', '', 'g'),
                '\((?:[^()]|\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))*\)', '', 'g'),
            '\[[^\[\]]*\]|\{[^{}]*\}', '', 'g'),
            '\[[^\[\]]*\]|\{[^{}]*\}', '', 'g'),
        '<(?:[^<>]|<(?:[^<>]|<(?:[^<>]|<[^<>]*>)*>)*>)*>', '', 'g'),
        '<(?:[^<>]|<(?:[^<>]|<(?:[^<>]|<[^<>]*>)*>)*>)*>', '', 'g'),
        '<(?:[^<>]|<(?:[^<>]|<(?:[^<>]|<[^<>]*>)*>)*>)*>', '', 'g'),
    '[<({\[].*$| (?:const|volatile|noexcept|&&?)(?: .*)?$', '', 's'
);

COMMENT ON MACRO v1._unbracketed IS 'A kernel''s name without clone suffix, anonymous namespaces and everything in brackets.';
