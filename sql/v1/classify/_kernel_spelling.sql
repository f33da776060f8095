-- One spelling for a kernel name, whichever demangler printed it. nsys writes (int)4, (bool)0, <unnamed> and [lambda()
-- (instance 3)]; libstdc++'s demangler, and so Kineto, writes 4, false, (anonymous namespace) and {lambda()#3}. nsys
-- also names parameters by template parameter (T1), where the other repeats their types.
-- Grain: kernel name. Method: replace what the two print differently, then remove parameter lists from the innermost
-- out. Template arguments stay, so kernels that differ in them stay distinct.
CREATE VIEW v1._kernel_spelling AS
WITH plain_name AS (
    SELECT
        k.name,
        regexp_replace(regexp_replace(regexp_replace(regexp_replace(regexp_replace(
            replace(replace(replace(replace(
                k.name, '(anonymous namespace)', '{anonymous}'), '<unnamed>', '{anonymous}'),
                '(bool)0', 'false'), '(bool)1', 'true'),
            '\((?:unsigned |signed )?(?:int|long|long long|short|char)\)(-?[0-9])', '\1', 'g'),
            '([0-9])(?:u|l|ul|ll|ull)\b', '\1', 'g'),
            '[\[{]lambda\([^()]*\)(?: \(instance |#)([0-9]+)(?:\)\]|\})', '{lambda#\1}', 'g'),
            'operator ?\(\)', 'operator_call', 'g'),
            '\bvoid |\b(?:static|const) | const\b', '', 'g') AS plain
    FROM v1._kernel_class AS k
),
listless AS (
    SELECT
        p.name,
        regexp_replace(regexp_replace(regexp_replace(regexp_replace(regexp_replace(regexp_replace(p.plain,
            '\([^()]*\)', '', 'g'), '\([^()]*\)', '', 'g'), '\([^()]*\)', '', 'g'),
            '\([^()]*\)', '', 'g'), '\([^()]*\)', '', 'g'), '\([^()]*\)', '', 'g') AS plain
    FROM plain_name AS p
)
SELECT
    s.name,
    regexp_replace(regexp_replace(s.plain, '\[clone [^\]]*\]|\.kd$', '', 'g'), ' ', '', 'g') AS spelling
FROM listless AS s;
