-- The header of an exported timeline. One row.
-- In:  as in trace_cpu.sql. Rank, versions and process groups are given only for a single capture; devices only if all
--      captures have the same ones. base_ns: Unix time of the file's zero; NULL if no clock can be converted to Unix
--      time, and before 1970, which no format can tell.
WITH devices AS (
    SELECT d.device_id, d.name, d.vendor, d.sm_count, d.memory_bytes, d.arch, count(*) OVER (PARTITION BY d.device_id) AS kinds
    FROM main.device AS d
    WHERE d.capture_id IN (SELECT p.capture_id FROM temp.trace_process AS p)
    GROUP BY d.device_id, d.name, d.vendor, d.sm_count, d.memory_bytes, d.arch
)

SELECT
    (SELECT max(c.base_ns) FILTER (c.is_unix AND c.base_ns >= 0) FROM temp.trace_clock AS c) AS base_ns,
    (SELECT bool_and(c.is_comparable) FROM temp.trace_clock AS c) AS is_comparable,
    (SELECT count(*) FROM temp.trace_clock AS c WHERE c.stretch <> 0) AS stretched,
    (SELECT count(*) FROM temp.trace_slice AS s) AS slices,
    (SELECT count(*) FROM temp.trace_slice AS s WHERE s.kind = 'gpu') AS gpu_slices,
    (SELECT count(*) FROM temp.trace_slice AS s WHERE s.n IN (SELECT l.n FROM temp.trace_link AS l WHERE l.lane > 0)) AS aside,
    count(*) AS captures,
    CASE WHEN count(*) = 1 THEN any_value(c.rank) END AS rank,
    CASE WHEN count(*) = 1 THEN any_value(c.world_size) END AS world_size,
    CASE WHEN count(*) = 1 THEN any_value(c.metadata) END AS metadata,
    (
        SELECT list({
            'id': d.device_id, 'name': d.name, 'numSms': d.sm_count, 'totalGlobalMem': d.memory_bytes,
            'computeMajor': CASE WHEN d.arch LIKE 'sm\_%' ESCAPE '\' THEN TRY_CAST(d.arch[4:-2] AS INTEGER) END,
            'computeMinor': CASE WHEN d.arch LIKE 'sm\_%' ESCAPE '\' THEN TRY_CAST(d.arch[-1:] AS INTEGER) END,
            'warpSize': CASE d.vendor WHEN 'AMD' THEN 64 WHEN 'NVIDIA' THEN 32 END
        } ORDER BY d.device_id)
        FROM devices AS d
        WHERE NOT EXISTS (SELECT 1 FROM devices AS o WHERE o.kinds > 1)
    ) AS devices
FROM temp.trace_process AS p
INNER JOIN main.capture AS c ON c.capture_id = p.capture_id;
