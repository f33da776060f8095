-- What the selected captures have in common, in words. Grain: fact. What no capture records is NULL.
WITH label AS (
    SELECT unnest(map_entries(s.labels)) AS pair
    FROM temp.selected_capture AS s
),
label_value AS (
    SELECT DISTINCT pair.key AS key, pair.value AS value
    FROM label
),
gpu_name AS (
    SELECT DISTINCT coalesce(d.name, d.vendor) AS name
    FROM main.device AS d
    INNER JOIN temp.selected_capture AS s ON s.capture_id = d.capture_id
    WHERE d.is_used
),
status AS (
    SELECT s.status, count(*) AS captures
    FROM temp.selected_capture AS s
    GROUP BY s.status
),
-- Events that gave no row. Those with severity note need none (flow arrows, metadata); all others were lost.
without_row AS (
    SELECT
        i.severity,
        sum(i.skipped)::BIGINT AS events,
        string_agg(DISTINCT replace(i.code, '_', ' '), ', ' ORDER BY replace(i.code, '_', ' ')) AS codes
    FROM main.ingest_issue AS i
    SEMI JOIN temp.selected_capture AS s ON s.capture_id = i.capture_id
    WHERE i.skipped > 0
    GROUP BY i.severity
),
no_row AS (
    SELECT string_agg(
        format(
            '{:,} {} ({})',
            w.events, CASE w.severity WHEN 'note' THEN 'that need no row' ELSE 'lost to faults' END, w.codes
        ),
        ', ' ORDER BY w.severity DESC
    ) AS words
    FROM without_row AS w
),
fact AS (
    SELECT 0 AS place, 'captures' AS fact, count(*)::VARCHAR AS value
    FROM temp.selected_capture AS s
    UNION ALL
    SELECT 1, 'profilers', string_agg(DISTINCT s.source, ', ' ORDER BY s.source)
    FROM temp.selected_capture AS s
    UNION ALL
    SELECT 2, 'ranks', CASE
        WHEN count(DISTINCT s.rank) > 8 THEN format('{:d} from {:d} to {:d}', count(DISTINCT s.rank), min(s.rank), max(s.rank))
        ELSE array_to_string(list_sort(list(DISTINCT s.rank) FILTER (s.rank IS NOT NULL)), ', ')
    END
    FROM temp.selected_capture AS s
    UNION ALL
    SELECT 3, 'GPUs', string_agg(g.name, ', ' ORDER BY g.name)
    FROM gpu_name AS g
    UNION ALL
    SELECT 4, 'label ' || v.key, CASE
        WHEN count(*) > 12 THEN format('{:d} values', count(*))
        ELSE string_agg(v.value, ', ' ORDER BY try_cast(v.value AS DOUBLE), v.value)
    END
    FROM label_value AS v
    GROUP BY v.key
    UNION ALL
    SELECT 5, 'status', string_agg(format('{:d} {}', t.captures, t.status), ', ' ORDER BY t.captures DESC, t.status)
    FROM status AS t
    UNION ALL
    SELECT 6, 'kernels', format('{:,}', nullif(count(*), 0))
    FROM main.kernel_event AS e
    SEMI JOIN temp.selected_capture AS s ON s.capture_id = e.capture_id
    WHERE e.kind = 'kernel'
    UNION ALL
    SELECT 7, 'events read', CASE
        WHEN sum(s.events_read) IS NOT NULL THEN concat_ws(', ', format('{:,}', sum(s.events_read)::BIGINT), any_value(n.words))
    END
    FROM temp.selected_capture AS s
    LEFT JOIN no_row AS n ON true
)
SELECT fact, value
FROM fact
ORDER BY place, fact
