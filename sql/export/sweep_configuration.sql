-- Names the configurations of a sweep like the scripts of ROCm/aorta: 256thread_28ch.
-- In:  temp table selected_capture.
-- Out: temp table sweep_configuration (capture_id, place, full_config, threads_num, thread_config, channels_num,
--      channel_config, sweep). Other labels that distinguish configurations, the sweep above all, come before; the
--      cycle, if ranks recorded more than once, and the profiler, if there are several, come after.
CREATE OR REPLACE TEMP TABLE sweep_configuration AS
WITH captures AS (
    SELECT
        s.capture_id, s.set_id, s.source, s.labels, s.cycle,
        count(DISTINCT s.source) OVER () > 1 AS has_sources
    FROM v1._capture_set AS s
    SEMI JOIN temp.selected_capture AS c ON c.capture_id = s.capture_id
),

entries AS (
    SELECT DISTINCT set_id, unnest(map_entries(labels)) AS pair
    FROM captures
),

varying AS (
    SELECT pair.key AS key
    FROM entries
    WHERE pair.key NOT IN ('threads', 'channels')
    GROUP BY pair.key
    HAVING count(DISTINCT pair.value) > 1 OR count(*) < (SELECT count(DISTINCT c.set_id) FROM captures AS c)
),

others AS (
    SELECT
        e.set_id,
        string_agg(CASE e.pair.key WHEN 'sweep' THEN e.pair.value ELSE e.pair.key || e.pair.value END, '_'
            ORDER BY e.pair.key <> 'sweep', e.pair.key) AS said
    FROM entries AS e
    INNER JOIN varying AS v ON v.key = e.pair.key
    GROUP BY e.set_id
),

parts AS (
    SELECT
        c.capture_id,
        o.said,
        c.labels['threads'] || 'thread' AS thread_config,
        c.labels['channels'] || 'ch' AS channel_config,
        TRY_CAST(c.labels['threads'] AS BIGINT) AS threads_num,
        TRY_CAST(c.labels['channels'] AS BIGINT) AS channels_num,
        c.labels['sweep'] AS sweep,
        c.cycle,
        CASE WHEN c.has_sources THEN c.source END AS profiler
    FROM captures AS c
    LEFT JOIN others AS o ON o.set_id = c.set_id
)

SELECT
    capture_id,
    dense_rank() OVER (
        ORDER BY said NULLS FIRST, threads_num NULLS LAST, thread_config, channels_num NULLS LAST, channel_config,
            cycle NULLS FIRST, profiler
    ) AS place,
    coalesce(nullif(concat_ws('_', said, thread_config, channel_config, 'cycle' || cycle, profiler), ''), 'all') AS full_config,
    threads_num, thread_config, channels_num, channel_config, sweep
FROM parts;
