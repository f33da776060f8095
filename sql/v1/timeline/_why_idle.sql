-- What did the host do while a device was idle? Grain: idle slice of v1._why_slice × reason.
-- Up to the first launch of anything that runs later, nothing was pending and the host is the cause, as in
-- v1.idle_breakdown; if the launch of the event that ends the gap was not recorded, that is unknown. That part is, in this order: loading data, by name (v1._why_rule, subject host); silence of at least
-- 50 µs on all threads that launch GPU work; API calls that block; and the rest, in which the host runs operators and
-- launches. If the gap began in a call that waits for the GPU (or within 30 µs of its end), the rest belongs to that
-- call: without it the host would be ahead. So does the rest of later gaps, with the time that launching takes, until
-- they sum to the duration of the call: that is how far ahead the host would have been. If the gap ends up to 50 µs after
-- the launch, the time since is what launching takes. Otherwise the work was pending, which is a dependency: the
-- device-bound part of v1.idle_breakdown, without the time that launching takes. After the last event of the window,
-- nothing is pending.
-- Method: intervals are met with gaps by ASOF joins in both directions, which stay linear.
CREATE VIEW v1._why_idle AS
WITH gaps AS (
    SELECT
        s.clock_id, s.gpu_id, s.event_id, s.steps, s.start_ns, s.end_ns, s.from_ns,
        l.launch_id IS NOT NULL OR s.event_id IS NULL
            AND /* whole */ count(s.first_launch_ns) OVER (PARTITION BY s.clock_id) > 0
            /* part r.capture_id IS NOT NULL */ AS is_known,
        -- From here on launched work is known to be pending.
        greatest(least(s.end_ns, coalesce(s.first_launch_ns, s.end_ns)), s.start_ns) AS pending_ns,
        CASE WHEN is_known THEN pending_ns ELSE s.start_ns END AS host_end_ns,
        pending_ns - host_end_ns AS unknown_ns,
        -- The time from a launch to its start, as long as that is what launching takes. Work launched earlier was pending.
        CASE WHEN is_known AND s.end_ns - s.first_launch_ns <= 50000 THEN s.end_ns - host_end_ns ELSE 0 END AS launch_ns
    FROM v1._why_slice AS s /* inline */
    LEFT JOIN main.kernel_event AS e ON e.capture_id = s.clock_id AND e.event_id = s.event_id
    LEFT JOIN v1._timed_launch AS l ON l.capture_id = e.capture_id AND l.launch_id = e.launch_id
    LEFT JOIN (
        SELECT DISTINCT k.capture_id
        FROM main.kernel_event AS k
        WHERE /* whole */ false /* part k.launch_id IS NOT NULL */
    ) AS r ON r.capture_id = s.clock_id
    WHERE s.state = 'idle'
),
threads AS (
    SELECT DISTINCT l.capture_id, l.thread_id
    FROM main.launch AS l
    SEMI JOIN main.kernel_event AS e ON e.capture_id = l.capture_id AND e.launch_id = l.launch_id
    WHERE l.capture_id IN (SELECT g.clock_id FROM gaps AS g)
),
rules AS (
    SELECT u.subject, u.pattern, u.reason, 0 AS is_shipped, u.priority FROM main.why_rule AS u
    UNION ALL
    SELECT r.subject, r.pattern, r.reason, 1 AS is_shipped, r.priority FROM v1._why_rule AS r
),
host_names AS (
    SELECT DISTINCT o.name FROM main.op AS o WHERE o.parent_op_id IS NULL
    UNION
    SELECT DISTINCT a.name FROM main.annotation AS a WHERE a.style NOT IN ('mark', 'gpu_projection')
),
host_rules AS (
    SELECT n.name, arg_min(r.reason, (r.is_shipped, r.priority)) AS reason
    FROM host_names AS n
    INNER JOIN rules AS r ON r.subject = 'host' AND try(regexp_matches(n.name, r.pattern))
    GROUP BY n.name
),
named AS (
    SELECT o.capture_id, h.reason, o.start_ns, o.start_ns + o.duration_ns AS end_ns
    FROM main.op AS o
    INNER JOIN host_rules AS h ON h.name = o.name
    WHERE o.parent_op_id IS NULL
    UNION ALL
    SELECT a.capture_id, h.reason, a.start_ns, a.start_ns + a.duration_ns AS end_ns
    FROM main.annotation AS a
    INNER JOIN host_rules AS h ON h.name = a.name
    WHERE a.style NOT IN ('mark', 'gpu_projection') AND a.duration_ns IS NOT NULL AND a.time_fault IS NULL
),
activity AS (
    SELECT o.capture_id, o.start_ns, o.start_ns + o.duration_ns AS end_ns
    FROM main.op AS o
    SEMI JOIN threads AS t ON t.capture_id = o.capture_id AND t.thread_id IS NOT DISTINCT FROM o.thread_id
    WHERE o.parent_op_id IS NULL AND o.name NOT IN (SELECT h.name FROM host_rules AS h)
    UNION ALL
    SELECT l.capture_id, l.start_ns, l.start_ns + l.duration_ns
    FROM main.launch AS l
    SEMI JOIN threads AS t ON t.capture_id = l.capture_id AND t.thread_id IS NOT DISTINCT FROM l.thread_id
    WHERE l.time_fault IS NULL
),
reached AS (
    SELECT
        y.capture_id, y.start_ns AS end_ns,
        max(y.end_ns) OVER (
            PARTITION BY y.capture_id ORDER BY y.start_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS start_ns
    FROM activity AS y
    UNION ALL
    SELECT y.capture_id, 9223372036854775807, max(y.end_ns) FROM activity AS y GROUP BY y.capture_id
    UNION ALL
    SELECT y.capture_id, min(y.start_ns), -9223372036854775807 FROM activity AS y GROUP BY y.capture_id
),
spells AS (
    SELECT r.capture_id, 'silence' AS reason, r.start_ns, r.end_ns
    FROM reached AS r
    WHERE r.end_ns - 50000 >= r.start_ns
    UNION ALL
    SELECT n.capture_id, n.reason, min(n.start_ns), max(n.end_ns)
    FROM (
        SELECT
            m.capture_id, m.reason, m.start_ns, m.end_ns,
            sum(m.begins::INTEGER) OVER (PARTITION BY m.capture_id, m.reason ORDER BY m.start_ns, m.end_ns) AS spell
        FROM (
            SELECT
                k.capture_id, k.reason, k.start_ns, k.end_ns,
                coalesce(k.start_ns > max(k.end_ns) OVER (
                    PARTITION BY k.capture_id, k.reason ORDER BY k.start_ns, k.end_ns
                    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
                ), true) AS begins
            FROM named AS k
        ) AS m
    ) AS n
    GROUP BY n.capture_id, n.reason, n.spell
),
call_texts AS (
    SELECT DISTINCT l.name, e.copy_kind
    FROM main.launch AS l
    LEFT JOIN main.kernel_event AS e
        ON e.capture_id = l.capture_id AND e.launch_id = l.launch_id AND e.kind = 'memcpy'
),
call_rules AS (
    SELECT n.name, n.copy_kind, arg_min(r.reason, (r.is_shipped, r.priority)) AS reason
    FROM call_texts AS n
    INNER JOIN rules AS r
        ON r.subject = 'call' AND try(regexp_matches(n.name || coalesce(' ' || n.copy_kind, ''), r.pattern))
    GROUP BY n.name, n.copy_kind
),
calls AS (
    SELECT l.capture_id, h.reason, l.start_ns, max(l.start_ns + l.duration_ns) AS end_ns
    FROM main.launch AS l
    LEFT JOIN main.kernel_event AS e ON e.capture_id = l.capture_id AND e.launch_id = l.launch_id AND e.kind = 'memcpy'
    INNER JOIN call_rules AS h ON h.name = l.name AND h.copy_kind IS NOT DISTINCT FROM e.copy_kind
    SEMI JOIN threads AS t ON t.capture_id = l.capture_id AND t.thread_id IS NOT DISTINCT FROM l.thread_id
    WHERE l.time_fault IS NULL
    GROUP BY l.capture_id, h.reason, l.start_ns
),
intervals AS (
    SELECT p.capture_id, p.reason, false AS is_call, p.start_ns, p.end_ns FROM spells AS p
    UNION ALL
    SELECT c.capture_id, c.reason, true, c.start_ns, c.end_ns FROM calls AS c
),
kinds AS (
    SELECT DISTINCT i.capture_id, i.reason, i.is_call FROM intervals AS i
),
met AS (
    SELECT g.clock_id, g.gpu_id, g.start_ns, i.reason, i.is_call, least(i.end_ns, g.host_end_ns) - i.start_ns AS part_ns
    FROM intervals AS i
    CROSS JOIN (SELECT DISTINCT g.gpu_id FROM gaps AS g) AS d
    ASOF JOIN gaps AS g
        ON g.clock_id = i.capture_id AND v1._asof_key(g.gpu_id) = v1._asof_key(d.gpu_id) AND g.start_ns <= i.start_ns
    WHERE i.start_ns < g.host_end_ns
    UNION ALL
    SELECT g.clock_id, g.gpu_id, g.start_ns, i.reason, i.is_call, least(i.end_ns, g.host_end_ns) - g.start_ns
    FROM (
        SELECT g.clock_id, g.gpu_id, g.start_ns, g.host_end_ns, k.reason, k.is_call
        FROM gaps AS g
        INNER JOIN kinds AS k ON k.capture_id = g.clock_id
    ) AS g
    ASOF JOIN intervals AS i
        ON i.capture_id = g.clock_id AND i.reason = g.reason AND i.is_call = g.is_call AND i.start_ns < g.start_ns
    WHERE i.end_ns > g.start_ns
),
sums AS (
    SELECT m.clock_id, m.gpu_id, m.start_ns, m.reason, m.is_call, sum(m.part_ns) AS part_ns
    FROM met AS m
    GROUP BY m.clock_id, m.gpu_id, m.start_ns, m.reason, m.is_call
),
-- The last call before a gap that waited, and for how long inside the window.
held AS (
    SELECT
        g.clock_id, g.gpu_id, g.start_ns, c.reason, c.start_ns AS call_ns,
        greatest(c.end_ns - greatest(c.start_ns, g.from_ns), 0) AS lost_ns,
        c.end_ns >= g.start_ns - 30000 AS is_direct,
        greatest(least(c.end_ns, g.host_end_ns) - g.start_ns, 0) AS inside_ns
    FROM gaps AS g
    ASOF JOIN (SELECT c.capture_id, c.reason, c.start_ns, c.end_ns FROM calls AS c WHERE c.reason IN ('host_sync', 'copy_call')) AS c
        ON c.capture_id = g.clock_id AND c.start_ns <= g.start_ns
),
-- Parts in order, each within what the previous ones leave of the host's part of the gap.
ordered AS (
    SELECT
        p.clock_id, p.gpu_id, p.start_ns, p.reason, p.part_ns, p.place,
        coalesce(sum(p.part_ns) OVER (
            PARTITION BY p.clock_id, p.gpu_id, p.start_ns ORDER BY p.place, p.reason
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ), 0) AS before_ns
    FROM (
        SELECT
            s.clock_id, s.gpu_id, s.start_ns,
            CASE s.reason WHEN 'silence' THEN 'host_between' ELSE s.reason END AS reason,
            CASE WHEN s.reason = 'silence'
                THEN greatest(s.part_ns - coalesce(sum(s.part_ns) FILTER (NOT s.is_call AND s.reason <> 'silence') OVER (
                    PARTITION BY s.clock_id, s.gpu_id, s.start_ns
                ), 0), 0)
                ELSE s.part_ns
            END AS part_ns,
            CASE WHEN s.is_call THEN 3 WHEN s.reason = 'silence' THEN 2 ELSE 1 END AS place
        FROM sums AS s
    ) AS p
),
explained AS (
    SELECT
        g.clock_id, g.gpu_id, g.event_id, g.steps, g.start_ns, o.reason,
        greatest(least(o.part_ns, g.host_end_ns - g.start_ns - o.before_ns), 0)::BIGINT AS part_ns
    FROM ordered AS o
    INNER JOIN gaps AS g
        ON g.clock_id = o.clock_id AND g.gpu_id IS NOT DISTINCT FROM o.gpu_id AND g.start_ns = o.start_ns
),
rests AS (
    SELECT
        g.clock_id, g.gpu_id, g.event_id, g.steps, g.start_ns,
        g.host_end_ns - g.start_ns - coalesce(x.part_ns, 0) AS rest_ns,
        g.launch_ns,
        h.reason, h.is_direct,
        greatest(h.lost_ns - h.inside_ns - coalesce(sum(rest_ns + g.launch_ns + h.inside_ns) OVER (
            PARTITION BY g.clock_id, g.gpu_id, h.call_ns ORDER BY g.start_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ), 0), 0) AS lead_ns
    FROM gaps AS g
    LEFT JOIN held AS h
        ON h.clock_id = g.clock_id AND h.gpu_id IS NOT DISTINCT FROM g.gpu_id AND h.start_ns = g.start_ns
    LEFT JOIN (
        SELECT e.clock_id, e.gpu_id, e.start_ns, sum(e.part_ns) AS part_ns
        FROM explained AS e
        GROUP BY e.clock_id, e.gpu_id, e.start_ns
    ) AS x ON x.clock_id = g.clock_id AND x.gpu_id IS NOT DISTINCT FROM g.gpu_id AND x.start_ns = g.start_ns
),
rest AS (
    SELECT
        r.clock_id, r.gpu_id, r.event_id, r.steps, r.reason,
        coalesce(CASE WHEN r.is_direct THEN r.rest_ns ELSE least(r.rest_ns, r.lead_ns) END, 0) AS from_rest_ns,
        from_rest_ns + coalesce(least(r.launch_ns, greatest(r.lead_ns - from_rest_ns, 0)), 0) AS call_ns,
        r.rest_ns + r.launch_ns - call_ns AS own_ns
    FROM rests AS r
)
SELECT e.clock_id, e.gpu_id, e.steps, e.event_id, e.reason, e.part_ns::BIGINT AS part_ns
FROM explained AS e
WHERE e.part_ns > 0
UNION ALL
SELECT r.clock_id, r.gpu_id, r.steps, r.event_id, r.reason, r.call_ns::BIGINT
FROM rest AS r
WHERE r.call_ns > 0
UNION ALL
SELECT r.clock_id, r.gpu_id, r.steps, r.event_id, 'launch_bound', r.own_ns::BIGINT
FROM rest AS r
WHERE r.own_ns > 0
UNION ALL
SELECT g.clock_id, g.gpu_id, g.steps, g.event_id, 'dependency', g.end_ns - g.pending_ns - g.launch_ns
FROM gaps AS g
WHERE g.end_ns - g.pending_ns > g.launch_ns
UNION ALL
SELECT g.clock_id, g.gpu_id, g.steps, g.event_id, 'unknown_idle', g.unknown_ns
FROM gaps AS g
WHERE g.unknown_ns > 0;
