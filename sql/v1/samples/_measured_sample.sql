-- Samples recorded as a single number: the counterpart of v1._operator_iteration, which is for events.
-- Grain: row of main.operator_sample. The name is the one that a range would have, for --range.
CREATE VIEW v1._measured_sample AS
SELECT
    s.capture_id, s.sample_id, NULL::BIGINT AS annotation_id,
    c.source, c.rank, c.labels,
    concat(
        s.pass, '|', s.operator, '|',
        array_to_string([concat(p.key, '=', p.value) FOR p IN map_entries(s.shape)], '|')
    ) AS name,
    NULL::VARCHAR AS domain,
    s.gpu, s.operator, s.pass, s.dtype, s.shape, s.statistic, s.time_ns
FROM main.operator_sample AS s
INNER JOIN main.capture AS c ON c.capture_id = s.capture_id;
