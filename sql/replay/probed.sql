-- Says which kernels each tried call launched, and how long they took.
-- In:  a database that holds the trace of the trials: each call lies in a range named replay|SIGNATURE|VARIANT.
-- Out: temp table replay_probed(name, kernels, kernel_ns): what a call launched most often, as in signatures.sql, and
--      the median over calls of the sum of durations.
CREATE OR REPLACE TEMP TABLE replay_probed AS
WITH calls AS (
    SELECT
        a.name, a.annotation_id,
        sum(e.duration_ns) AS kernel_ns,
        to_json(list([
            e.name,
            CASE WHEN e.grid_x IS NOT NULL THEN [e.grid_x, e.grid_y, e.grid_z] END::VARCHAR,
            CASE WHEN e.block_x IS NOT NULL THEN [e.block_x, e.block_y, e.block_z] END::VARCHAR
        ] ORDER BY e.name, [e.grid_x, e.grid_y, e.grid_z], [e.block_x, e.block_y, e.block_z]))::VARCHAR AS kernels
    FROM main.annotation AS a
    INNER JOIN v1._range_member AS m
        ON m.capture_id = a.capture_id AND m.annotation_id = a.annotation_id AND m.rule = 'thread'
    INNER JOIN v1._gpu_event AS e ON e.capture_id = m.capture_id AND e.event_id = m.event_id
    WHERE a.name LIKE 'replay|%' AND a.style = 'user'
    GROUP BY a.name, a.annotation_id
)
SELECT c.name, mode(c.kernels ORDER BY c.kernels) AS kernels, median(c.kernel_ns)::DOUBLE AS kernel_ns
FROM calls AS c
GROUP BY c.name;
