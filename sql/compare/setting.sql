-- Adds the labels of the captures of one side of a comparison.
-- In:  {db}: the database of the side; {side}: its number; {captures}: condition on a capture c.
-- Out: more rows of temp table side_setting(side, capture_id, digest, key, value); key and value are NULL for a capture
--      without labels.
INSERT INTO side_setting
SELECT {side}, c.capture_id, c.sha256 || '/' || coalesce(c.part, 0), unnest(
    CASE WHEN cardinality(c.labels) > 0 THEN map_entries(c.labels) ELSE [NULL] END, RECURSIVE := true
)
FROM {db}.main.capture AS c
WHERE c.status <> 'no_gpu_activity' AND ({captures});
