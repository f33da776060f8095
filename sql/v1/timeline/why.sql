-- What keeps a step from the peak of the hardware?
-- Grain: configuration × recording × reason; reasons by their share, and last the time that is no loss (place NULL). The
-- time of each device is divided by v1._why_part, so shares add up to 100 and nothing counts twice. Shares are of the
-- steps of all devices of the ranks; removing a cause saves at most its share, since what it hides may come to light.
-- Rules and words: v1._why_rule, v1._why_reason; main.why_rule has your own.
CREATE VIEW v1.why AS
WITH parts AS (
    SELECT p.clock_id, p.gpu_id, p.steps, p.event_id, p.reason, p.part_ns, p.dtype, p.late_member, p.p_value
    FROM v1._why_part AS p /* inline */
),
sets AS (
    SELECT y.set_id, y.capture_id, y.source, y.labels, y.cycle, y.rank
    FROM v1._capture_set AS y
),
placed AS (
    SELECT s.set_id, s.rank, p.clock_id, p.gpu_id, p.steps, p.event_id, p.reason, p.part_ns, p.dtype, p.late_member, p.p_value
    FROM parts AS p
    INNER JOIN sets AS s ON s.capture_id = p.clock_id
),
devices AS (
    SELECT
        p.set_id, p.rank, p.clock_id, p.gpu_id,
        max(p.steps) AS steps,
        sum(p.part_ns) AS wall_ns
    FROM placed AS p
    GROUP BY p.set_id, p.rank, p.clock_id, p.gpu_id
),
walls AS (
    SELECT d.set_id, sum(d.wall_ns) AS wall_ns, max(d.steps) AS steps, sum(greatest(d.steps, 1)) AS device_steps, count(*) AS gpus
    FROM devices AS d
    GROUP BY d.set_id
),
by_device AS (
    SELECT
        d.set_id, d.rank, d.clock_id, d.gpu_id, r.reason, d.wall_ns,
        coalesce(sum(p.part_ns), 0) AS part_ns,
        100.0 * coalesce(sum(p.part_ns), 0) / d.wall_ns AS percent
    FROM devices AS d
    INNER JOIN (SELECT DISTINCT p.set_id, p.reason FROM placed AS p) AS r ON r.set_id = d.set_id
    LEFT JOIN placed AS p
        ON p.clock_id = d.clock_id AND p.gpu_id IS NOT DISTINCT FROM d.gpu_id AND p.reason = r.reason
    GROUP BY d.set_id, d.rank, d.clock_id, d.gpu_id, r.reason, d.wall_ns
),
worst AS (
    SELECT
        b.set_id, b.reason,
        arg_max(b.rank, (b.percent, -b.clock_id)) FILTER (b.rank IS NOT NULL) AS rank,
        max(b.percent) AS rank_percent,
        -- whom the others wait for
        arg_min(b.rank, (b.percent, b.clock_id)) FILTER (b.rank IS NOT NULL) AS least_rank,
        min(b.percent) AS least_percent,
        count(DISTINCT b.rank) AS ranks,
        sum(b.part_ns) AS part_ns
    FROM by_device AS b
    GROUP BY b.set_id, b.reason
),
by_event AS (
    SELECT p.set_id, p.reason, p.clock_id, p.event_id, sum(p.part_ns) AS part_ns
    FROM placed AS p
    WHERE p.event_id IS NOT NULL
    GROUP BY p.set_id, p.reason, p.clock_id, p.event_id
),
counted AS (
    SELECT b.set_id, b.reason, count(*) AS events, arg_max(b.clock_id, (b.part_ns, -b.clock_id, -b.event_id)) AS clock_id
    FROM by_event AS b
    GROUP BY b.set_id, b.reason
),
longest AS (
    SELECT
        b.set_id, b.reason,
        any_value(c.clock_id) AS clock_id,
        any_value(c.events) AS events,
        list(b.event_id ORDER BY b.part_ns DESC, b.event_id)[:3] AS event_ids
    FROM by_event AS b
    INNER JOIN counted AS c ON c.set_id = b.set_id AND c.reason = b.reason AND c.clock_id = b.clock_id
    GROUP BY b.set_id, b.reason
),
-- The kernel or operation that takes most of a reason's time.
by_name AS (
    SELECT b.set_id, b.reason, e.name, sum(b.part_ns) AS part_ns
    FROM by_event AS b
    INNER JOIN main.kernel_event AS e ON e.capture_id = b.clock_id AND e.event_id = b.event_id
    GROUP BY b.set_id, b.reason, e.name
),
names AS (
    SELECT n.set_id, n.reason, arg_max(n.name, (n.part_ns, n.name)) AS name
    FROM by_name AS n
    GROUP BY n.set_id, n.reason
),
-- In which types the products below the roof compute, each with a tenth or more of their time.
types AS (
    SELECT
        t.set_id,
        bool_or(t.dtype IN ('fp32', 'fp64')) AS has_full,
        bool_or(t.dtype = 'tf32') AS has_tf32,
        bool_or(t.dtype IN ('fp16', 'bf16')) AS has_half
    FROM (
        SELECT p.set_id, p.dtype, sum(p.part_ns) >= 0.1 * sum(sum(p.part_ns)) OVER (PARTITION BY p.set_id) AS counts
        FROM placed AS p
        WHERE p.reason = 'below_peak'
        GROUP BY p.set_id, p.dtype
    ) AS t
    WHERE t.counts
    GROUP BY t.set_id
),
stragglers AS (
    SELECT p.set_id, max(p.late_member) AS member, min(p.p_value) FILTER (p.late_member IS NOT NULL) AS p_value
    FROM placed AS p
    GROUP BY p.set_id
),
-- How long each rank waits for the straggler.
rank_waits AS (
    SELECT b.set_id, b.rank, sum(b.part_ns) / sum(greatest(d.steps, 1)) / 1e6 AS step_ms, 100.0 * sum(b.part_ns) / sum(b.wall_ns) AS percent
    FROM by_device AS b
    INNER JOIN devices AS d ON d.clock_id = b.clock_id AND d.gpu_id IS NOT DISTINCT FROM b.gpu_id
    WHERE b.reason = 'straggler' AND b.rank IS NOT NULL
    GROUP BY b.set_id, b.rank
),
waits AS (
    SELECT
        w.set_id,
        list(format('rank {:d} {:.3f} ms ({:.1f} %)', w.rank, w.step_ms, w.percent) ORDER BY w.step_ms DESC, w.rank)
            FILTER (w.rank <> g.member) AS others,
        max(w.percent) FILTER (w.rank = g.member) AS own_percent
    FROM rank_waits AS w
    INNER JOIN stragglers AS g ON g.set_id = w.set_id
    GROUP BY w.set_id
),
-- What a straggler does more than the others: the reason whose time per step differs most from the mean of the other
-- ranks.
differences AS (
    SELECT
        b.set_id, b.reason,
        sum(b.part_ns) FILTER (b.rank = g.member) / sum(greatest(d.steps, 1)) FILTER (b.rank = g.member) / 1e6 AS own_ms,
        sum(b.part_ns) FILTER (b.rank <> g.member) / sum(greatest(d.steps, 1)) FILTER (b.rank <> g.member) / 1e6 AS other_ms
    FROM by_device AS b
    INNER JOIN devices AS d ON d.clock_id = b.clock_id AND d.gpu_id IS NOT DISTINCT FROM b.gpu_id
    INNER JOIN stragglers AS g ON g.set_id = b.set_id
    WHERE b.reason NOT IN ('straggler', 'uneven_ranks', 'exposed_collective', 'small_messages')
    GROUP BY b.set_id, b.reason
),
causes AS (
    SELECT d.set_id, arg_max(d.reason, d.own_ms - d.other_ms) AS reason, arg_max(d.own_ms, d.own_ms - d.other_ms) AS own_ms,
        arg_max(d.other_ms, d.own_ms - d.other_ms) AS other_ms
    FROM differences AS d
    WHERE d.own_ms > d.other_ms
    GROUP BY d.set_id
)
SELECT
    y.source,
    y.labels,
    y.cycle,
    CASE WHEN coalesce(r.is_reason, true) THEN
        row_number() OVER (
            PARTITION BY b.set_id ORDER BY coalesce(r.is_reason, true) DESC, b.part_ns DESC, b.reason
        )
    END AS place,
    b.reason,
    coalesce(
        CASE WHEN b.reason = 'straggler' THEN format('Other ranks wait for rank {:d}, which is late', g.member) END, r.title, b.reason
    ) AS title,
    100.0 * b.part_ns / nullif(w.wall_ns, 0) AS share_percent,
    (b.part_ns / w.device_steps)::BIGINT AS step_ns,
    b.part_ns::BIGINT AS time_ns,
    w.wall_ns::BIGINT AS wall_ns,
    w.steps,
    CASE WHEN b.reason = 'straggler' THEN g.member ELSE b.rank END AS worst_rank,
    CASE WHEN b.reason = 'straggler' THEN v.own_percent ELSE b.rank_percent END AS worst_percent,
    CASE
        WHEN b.reason = 'straggler' THEN
            format('rank {:d} is late; by chance that happens with probability {:.1g}', g.member, g.p_value)
            || coalesce(CASE WHEN w.steps > 0 THEN '. Per step' ELSE '. In all' END || ' the others wait for it: ' || array_to_string(v.others[:4], ', ')
                || CASE WHEN len(v.others) > 4 THEN format(', and {:d} more less', len(v.others) - 4) ELSE '' END, '')
            || CASE WHEN u.reason IS NULL THEN ''
                ELSE format('. It differs most in {:s}: {:.1f} ms{:s}, the other ranks {:.1f} ms', u.reason, u.own_ms,
                    CASE WHEN w.steps > 0 THEN ' per step' ELSE '' END, u.other_ms)
            END
        WHEN b.reason IN ('pipeline_bubble', 'expert_imbalance', 'uneven_ranks') AND b.ranks > 1 THEN
            format('rank {:d} waits least ({:.1f} % of its step), so the others wait for it most; rank {:d} waits most ({:.1f} %)',
                b.least_rank, b.least_percent, b.rank, b.rank_percent)
        WHEN b.reason IN (
            'host_between', 'launch_bound', 'data_loading', 'host_sync', 'copy_call', 'allocation', 'dependency', 'unknown_idle'
        )
            THEN format(CASE l.events WHEN 1 THEN '{:d} gap, which ends with {:s}' ELSE '{:d} gaps; the longest end with {:s}' END, l.events, CASE WHEN length(n.name) > 80 THEN left(n.name, 79) || '…' ELSE n.name END)
            || CASE WHEN b.reason = 'launch_bound' AND h.events > 0
                THEN format('. The host also waits for the GPU ({:d} in host_sync), so it cannot run ahead', h.events) ELSE '' END
        WHEN n.name IS NOT NULL THEN format(CASE l.events WHEN 1 THEN '{:d} event: {:s}' ELSE '{:d} events; most time in {:s}' END, l.events, CASE WHEN length(n.name) > 80 THEN left(n.name, 79) || '…' ELSE n.name END)
    END AS detail,
    l.events,
    l.clock_id AS capture_id,
    l.event_ids,
    coalesce(r.evidence, 'kernels') AS evidence,
    replace(replace(r.details, '{capture}', l.clock_id::VARCHAR), '{events}', array_to_string(l.event_ids, ', ')) AS sql,
    CASE WHEN b.reason = 'below_peak' THEN
        CASE WHEN t.has_full THEN 'bf16 or fp8 instead of fp32, or TF32; ' WHEN t.has_tf32 THEN 'bf16 or fp8 instead of TF32; '
            WHEN t.has_half THEN 'fp8 where its accuracy is enough; ' ELSE '' END
    ELSE '' END || r.advice AS advice
FROM worst AS b
INNER JOIN walls AS w ON w.set_id = b.set_id
INNER JOIN (
    SELECT s.set_id, any_value(s.source) AS source, any_value(s.labels) AS labels, any_value(s.cycle) AS cycle
    FROM sets AS s
    GROUP BY s.set_id
) AS y ON y.set_id = b.set_id
LEFT JOIN v1._why_reason AS r ON r.reason = b.reason
LEFT JOIN longest AS h ON h.set_id = b.set_id AND h.reason = 'host_sync'
LEFT JOIN longest AS l ON l.set_id = b.set_id AND l.reason = b.reason
LEFT JOIN names AS n ON n.set_id = b.set_id AND n.reason = b.reason
LEFT JOIN stragglers AS g ON g.set_id = b.set_id
LEFT JOIN types AS t ON t.set_id = b.set_id
LEFT JOIN waits AS v ON v.set_id = b.set_id
LEFT JOIN causes AS u ON u.set_id = b.set_id;

COMMENT ON VIEW v1.why IS 'What keeps a step from the peak of the hardware: its time by reason, with evidence and what to try. Grain: configuration × recording × reason.';
COMMENT ON COLUMN v1.why.source IS 'Profiler or format of the captures.';
COMMENT ON COLUMN v1.why.labels IS 'Configuration: labels of the captures, without the rank.';
COMMENT ON COLUMN v1.why.cycle IS 'Recording number, from 1 in time order, if the ranks recorded more than once; else NULL. [-]';
COMMENT ON COLUMN v1.why.place IS 'Place among the reasons by share; NULL for time that is no loss or cannot be judged. [-]';
COMMENT ON COLUMN v1.why.reason IS 'Reason by the rules of v1._why_rule and main.why_rule; computation is no loss, or cannot be judged.';
COMMENT ON COLUMN v1.why.title IS 'The reason in words.';
COMMENT ON COLUMN v1.why.share_percent IS 'Share of the step time of all devices; the shares of a recording add up to 100. Where a report chooses events (--class, --range, --skip-warmup): of their time and of the idle time that ends with them. [percent]';
COMMENT ON COLUMN v1.why.step_ns IS 'Time per step and device; of the whole recording if no steps are marked. [ns]';
COMMENT ON COLUMN v1.why.time_ns IS 'Time over all steps and devices. [ns]';
COMMENT ON COLUMN v1.why.wall_ns IS 'Step time over all steps and devices; where a report chooses events, of these and the idle time that ends with them. [ns]';
COMMENT ON COLUMN v1.why.steps IS 'Number of marked steps; 0 if none are marked. [count]';
COMMENT ON COLUMN v1.why.worst_rank IS 'The straggler, which causes the waiting (detail says how long the others wait), or the rank with the largest share (of other waiting, detail names the rank that is waited for); NULL if ranks are unknown. [-]';
COMMENT ON COLUMN v1.why.worst_percent IS 'The share that worst_rank has of its own step time, the largest of all devices; of a straggler its own waiting, which is small. [percent]';
COMMENT ON COLUMN v1.why.detail IS 'Evidence in words; NULL if there is none.';
COMMENT ON COLUMN v1.why.events IS 'Number of GPU events concerned; of idle time, those that end the gaps. [count]';
COMMENT ON COLUMN v1.why.capture_id IS 'Capture of event_ids. [-]';
COMMENT ON COLUMN v1.why.event_ids IS 'The events with the longest parts (kernel_event.event_id); of idle time, those that end the gaps. [-]';
COMMENT ON COLUMN v1.why.evidence IS 'View that shows more.';
COMMENT ON COLUMN v1.why.sql IS 'Query that shows the evidence.';
COMMENT ON COLUMN v1.why.advice IS 'What to try.';
