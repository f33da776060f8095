-- A device, process or thread for an ASOF join in which NULL meets NULL. Not IS NOT DISTINCT FROM: in an ASOF join,
-- DuckDB 1.4 and 1.5 then match rows without a time, and beside such rows lose others whose key is NULL.
CREATE MACRO v1._asof_key(id) AS
coalesce(id, -9223372036854775807);

COMMENT ON MACRO v1._asof_key IS 'Device, process or thread number; a number that none has, if NULL.';
