-- Makes the processes and lanes of an exported timeline, with numbers and names.
-- In:  temp tables trace_slice, trace_link, trace_clock, trace_event, selected_capture.
-- Out: temp tables trace_process (a capture), trace_lane (a lane of a track: what viewers call a thread).
-- A process keeps the recorded number if these numbers distinguish the captures; a thread keeps its number if all
-- numbers of its process fit into what viewers accept. Operators are numbered above every correlation id, so that no
-- reader confuses the two.
CREATE OR REPLACE TEMP TABLE trace_process AS
WITH sizes AS (
    SELECT o.capture_id, max(o.op_id) + 1 AS ops
    FROM main.op AS o
    GROUP BY o.capture_id
),

highest AS (
    SELECT coalesce(max(e.correlation_id), 0) AS correlation_id
    FROM temp.trace_event AS e
),

captures AS (
    SELECT
        c.capture_id, c.rank, c.pid, c.source,
        coalesce(
            'rank ' || c.rank,
            concat_ws(': ', 'capture ' || c.capture_id, nullif(regexp_extract(c.path, '[^/\\]*$'), ''))
        ) AS name,
        array_to_string([pair.key || '=' || pair.value FOR pair IN map_entries(c.labels)], ' ') AS labels,
        count(c.pid) FILTER (c.pid BETWEEN 1 AND 2147483647) OVER () AS pids,
        count(*) OVER () AS captures,
        (SELECT count(DISTINCT d.pid) FROM temp.selected_capture AS d
            WHERE d.capture_id IN (SELECT t.capture_id FROM temp.trace_clock AS t)) AS distinct_pids,
        coalesce(z.ops, 0) AS ops
    FROM temp.selected_capture AS c
    INNER JOIN temp.trace_clock AS t ON t.capture_id = c.capture_id
    LEFT JOIN sizes AS z ON z.capture_id = c.capture_id
)

SELECT
    c.capture_id,
    CASE WHEN c.pids = c.captures AND c.distinct_pids = c.captures THEN c.pid
        ELSE row_number() OVER (ORDER BY c.capture_id) END AS pid,
    c.name,
    concat_ws(' ', nullif(c.labels, ''), c.source) AS labels,
    row_number() OVER (ORDER BY c.labels, c.rank NULLS LAST, c.capture_id) AS place,
    h.correlation_id + 1 + coalesce(sum(c.ops) OVER (
        ORDER BY c.capture_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ), 0)::BIGINT AS first_op
FROM captures AS c
CROSS JOIN highest AS h;

CREATE OR REPLACE TEMP TABLE trace_lane AS
WITH lanes AS (
    SELECT
        s.capture_id, s.track, coalesce(l.lane, 0) AS lane,
        any_value(s.kind) AS kind,
        any_value(s.process_id) AS process_id, any_value(s.thread_id) AS thread_id,
        any_value(s.device_id) AS device_id, any_value(s.context_id) AS context_id,
        any_value(s.stream_id) AS stream_id, any_value(s.queue_id) AS queue_id
    FROM temp.trace_slice AS s
    LEFT JOIN temp.trace_link AS l ON l.n = s.n
    GROUP BY s.capture_id, s.track, coalesce(l.lane, 0)
),

facts AS (
    SELECT
        capture_id, track, lane,
        CASE WHEN kind IN ('gpu', 'projection') THEN kind ELSE 'thread' END AS kind,
        process_id, thread_id, device_id, context_id, stream_id, queue_id,
        count(DISTINCT context_id) OVER (PARTITION BY capture_id) > 1 AS has_contexts,
        count(DISTINCT process_id) OVER (PARTITION BY capture_id) > 1 AS has_processes,
        count(DISTINCT coalesce(queue_id, -1)) OVER (PARTITION BY capture_id, kind, device_id, context_id, stream_id) > 1
            AS has_queues,
        coalesce(bool_and(thread_id BETWEEN 1 AND 2147483647) OVER (PARTITION BY capture_id), false)
            AND count(DISTINCT process_id) OVER (PARTITION BY capture_id) <= 1 AS thread_ids_fit,
        -- Numbers above those of threads; viewers accept 32 bits.
        CASE WHEN thread_ids_fit THEN CASE
            WHEN max(thread_id) OVER (PARTITION BY capture_id) < 1 << 30 THEN max(thread_id) OVER (PARTITION BY capture_id)
            ELSE 1::BIGINT << 31
        END ELSE 0 END AS base
    FROM lanes
)

SELECT
    capture_id, track, lane,
    row_number() OVER (ORDER BY track, lane) AS number,
    CASE
        WHEN kind = 'thread' AND lane = 0 AND thread_ids_fit AND thread_id IS NOT NULL THEN thread_id
        ELSE base + row_number() OVER (PARTITION BY capture_id ORDER BY track, lane)
    END AS tid,
    row_number() OVER (PARTITION BY capture_id ORDER BY track, lane) AS place,
    CASE kind
        WHEN 'thread' THEN coalesce('thread ' || thread_id, 'unknown thread')
            || CASE WHEN has_processes THEN coalesce(' of process ' || process_id, '') ELSE '' END
        ELSE concat_ws(
            ' ',
            coalesce('GPU ' || device_id, 'unknown GPU'),
            CASE WHEN has_contexts THEN 'context ' || context_id END,
            coalesce('stream ' || stream_id, 'queue ' || queue_id, 'unknown stream'),
            CASE WHEN has_queues AND stream_id IS NOT NULL THEN coalesce('queue ' || queue_id, 'unknown queue') END,
            CASE kind WHEN 'projection' THEN 'ranges' END
        )
    END AS name
FROM facts;
