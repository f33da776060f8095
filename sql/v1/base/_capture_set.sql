-- Which captures belong together: the ranks of one configuration that recorded at the same time.
-- Grain: capture. set_id is the lowest capture number of the set; cycle is NULL if no rank recorded more than once.
CREATE VIEW v1._capture_set AS
SELECT
    c.capture_id,
    min(c.capture_id) OVER (PARTITION BY c.configuration_id, y.cycle) AS set_id,
    c.source,
    c.labels,
    y.cycle,
    c.rank,
    c.clock_zero_unix_ns
FROM v1._capture_configuration AS c
LEFT JOIN v1._capture_cycle AS y ON y.capture_id = c.capture_id;
