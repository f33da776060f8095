-- Which ranges are samples of an operator, and what are their parameters?
-- Grain: range named PASS|OPERATOR|key=value|…, with PASS fwd, bwd, step or comm. The key dtype (or precision) gives
-- the element type; every other key with a whole number is a shape parameter. A name in which a key occurs twice is not
-- a sample. Each name is parsed once, because a sweep repeats it for every iteration.
CREATE VIEW v1._sample_range AS
WITH names AS (
    SELECT DISTINCT a.name
    FROM main.annotation AS a
    WHERE regexp_full_match(a.name, '(fwd|bwd|step|comm)[|][^|=]+([|][^|=]+=[^|=]*)+')
),
pairs AS (
    SELECT
        n.name,
        split_part(n.name, '|', 1) AS pass,
        split_part(n.name, '|', 2) AS operator,
        [split_part(p, '=', 1) FOR p IN string_split(n.name, '|')[3:]] AS keys,
        [split_part(p, '=', 2) FOR p IN string_split(n.name, '|')[3:]] AS texts,
        [{'key': split_part(p, '=', 1), 'value': TRY_CAST(split_part(p, '=', 2) AS BIGINT)}
            FOR p IN string_split(n.name, '|')[3:]] AS entries
    FROM names AS n
),
known AS (
    SELECT
        p.name, p.pass, p.operator, p.entries,
        nullif(p.texts[coalesce(list_position(p.keys, 'dtype'), list_position(p.keys, 'precision'))], '') AS dtype
    FROM pairs AS p
    WHERE len(list_distinct(p.keys)) = len(p.keys)
)
SELECT
    a.capture_id, a.annotation_id, a.start_ns, a.duration_ns,
    k.name, a.domain, k.pass, k.operator, k.dtype,
    map_from_entries([e FOR e IN k.entries IF e.value IS NOT NULL]) AS shape
FROM known AS k
INNER JOIN main.annotation AS a ON a.name = k.name
WHERE a.style NOT IN ('mark', 'gpu_projection', 'python_function') AND a.time_fault IS NULL;
