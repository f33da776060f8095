-- Which reason stands for each part of the step time of a device? Grain: capture × device × event × reason. The parts of
-- a device add up to its window (v1._why_slice), so nothing counts twice. The time of kernels below the roof (v1.roofline:
-- the longer of FLOPs at the peak rate and bytes at the bandwidth) is split into the time at the roof and the rest; a
-- kernel whose operator has no such figures is computation. Of an exposed collective, the time up to the latency of the
-- call (the shortest duration over ranks) is transfer, and the rest is waiting. late_member: the straggler, if the call
-- waits for it, with the least of the probabilities of v1.stragglers. dtype: the type in which the operator of a kernel
-- computes (tf32 for fp32 on such tensor cores); NULL if unknown.
CREATE VIEW v1._why_part AS
WITH worked AS (
    SELECT s.clock_id, s.gpu_id, s.steps, s.state, s.event_id, sum(s.end_ns - s.start_ns)::BIGINT AS own_ns
    FROM v1._why_slice AS s /* inline */
    WHERE s.state <> 'idle'
    GROUP BY s.clock_id, s.gpu_id, s.steps, s.state, s.event_id
),
costs AS (
    SELECT
        a.clock_id, a.gpu_id, a.op_id,
        CASE WHEN c.dtype = 'fp32' AND a.has_tf32 THEN 'tf32' ELSE c.dtype END AS dtype,
        CASE
            WHEN c.flops IS NULL THEN c.bytes / nullif(b.gbps, 0)
            WHEN c.bytes IS NULL THEN c.flops / nullif(p.tflops, 0) / 1e3
            ELSE greatest(c.flops / nullif(p.tflops, 0) / 1e3, c.bytes / nullif(b.gbps, 0))
        END / nullif(a.gpu_ns, 0) AS roof_share
    FROM v1._launched_op AS a
    INNER JOIN v1._op_cost AS c ON c.capture_id = a.clock_id AND c.op_id = a.op_id
    INNER JOIN main.device AS d ON d.capture_id = a.clock_id AND d.device_id = a.gpu_id
    LEFT JOIN (
        SELECT k.name, k.dtype, coalesce(k.sheet_tflops, k.measured_tflops) AS tflops FROM v1._device_peak AS k
    ) AS p ON p.name = d.name AND p.dtype = CASE WHEN c.dtype = 'fp32' AND a.has_tf32 THEN 'tf32' ELSE c.dtype END
    LEFT JOIN (
        SELECT k.name, max(coalesce(k.sheet_gbps, k.measured_gbps)) AS gbps FROM v1._device_peak AS k GROUP BY k.name
    ) AS b ON b.name = d.name
    WHERE c.flops IS NOT NULL
),
rules AS (
    SELECT u.subject, u.pattern, u.reason, 0 AS is_shipped, u.priority FROM main.why_rule AS u
    UNION ALL
    SELECT r.subject, r.pattern, r.reason, 1 AS is_shipped, r.priority FROM v1._why_rule AS r
),
-- Rules for kernels are applied to each distinct name, whose text no later step carries.
kernel_rules AS (
    SELECT n.name, n.class, arg_min(r.reason, (r.is_shipped, r.priority)) AS reason
    FROM (SELECT DISTINCT k.name, k.class FROM v1._gpu_event AS k WHERE k.kind IN ('kernel', 'graph')) AS n
    INNER JOIN rules AS r
        ON r.subject = 'kernel' AND try(regexp_matches(n.class || ' ' || left(n.name, 400), r.pattern))
    GROUP BY n.name, n.class
),
events AS (
    SELECT e.capture_id, e.event_id, e.kind, e.collective, e.bytes, e.copy_kind, e.op_id, h.reason AS kernel_reason
    FROM v1._gpu_event AS e
    LEFT JOIN kernel_rules AS h ON h.name = e.name AND h.class = e.class
),
described AS (
    SELECT
        w.clock_id, w.gpu_id, w.steps, w.state, w.event_id, w.own_ns,
        CASE w.state
            WHEN 'compute' THEN 'kernel'
            ELSE w.state
        END AS subject,
        CASE w.state WHEN 'compute' THEN e.kernel_reason END AS kernel_reason,
        CASE w.state
            WHEN 'collective' THEN coalesce(m.collective, e.collective, 'unknown') || ' '
                || CASE WHEN m.message_bytes IS NULL THEN 'unsized' WHEN m.message_bytes < 1048576 THEN 'small' ELSE 'large' END
                || CASE WHEN m.is_uneven THEN ' uneven' ELSE ' even' END
            WHEN 'copy' THEN coalesce(e.copy_kind, e.kind) || CASE WHEN e.bytes <= 1024 THEN ' small' ELSE ' large' END
        END AS subject_text,
        CASE WHEN w.state = 'collective' AND m.ranks > 1 THEN greatest(w.own_ns - m.latency_ns, 0) ELSE 0 END AS wait_ns,
        m.late_member,
        m.late_p_value AS p_value,
        least(c.roof_share, 1) AS roof_share,
        c.dtype
    FROM worked AS w
    LEFT JOIN events AS e ON e.capture_id = w.clock_id AND e.event_id = w.event_id
    LEFT JOIN v1._straggler AS m ON m.capture_id = w.clock_id AND m.event_id = w.event_id
    LEFT JOIN costs AS c ON c.clock_id = w.clock_id AND c.gpu_id IS NOT DISTINCT FROM w.gpu_id AND c.op_id = e.op_id
),
pieces AS (
    SELECT
        d.clock_id, d.gpu_id, d.steps, d.event_id, d.roof_share, d.dtype, NULL AS late_member, NULL AS p_value,
        d.kernel_reason, d.subject,
        d.subject_text || CASE WHEN d.subject = 'collective' THEN ' transfer' ELSE '' END AS subject_text,
        d.own_ns - d.wait_ns AS part_ns
    FROM described AS d
    WHERE d.state <> 'unrecorded'
    UNION ALL
    SELECT
        d.clock_id, d.gpu_id, d.steps, d.event_id, NULL, NULL, d.late_member, d.p_value, NULL, d.subject,
        d.subject_text || CASE WHEN d.late_member IS NOT NULL THEN ' straggler' ELSE ' wait' END,
        d.wait_ns
    FROM described AS d
    WHERE d.wait_ns > 0
),
ruled AS (
    SELECT n.subject, n.subject_text, arg_min(r.reason, (r.is_shipped, r.priority)) AS reason
    FROM (SELECT DISTINCT p.subject, p.subject_text FROM pieces AS p WHERE p.subject <> 'kernel') AS n
    INNER JOIN rules AS r ON r.subject = n.subject AND try(regexp_matches(n.subject_text, r.pattern))
    GROUP BY n.subject, n.subject_text
),
judged AS (
    SELECT
        p.clock_id, p.gpu_id, p.steps, p.event_id,
        coalesce(p.kernel_reason, r.reason, 'computation') AS reason,
        p.part_ns,
        p.dtype,
        p.late_member,
        p.p_value,
        CASE WHEN coalesce(p.kernel_reason, r.reason) = 'below_peak'
            THEN p.part_ns - round(p.part_ns * (1 - coalesce(p.roof_share, 1)))::BIGINT ELSE 0
        END AS roof_ns
    FROM pieces AS p
    LEFT JOIN ruled AS r ON r.subject = p.subject AND r.subject_text = p.subject_text
)
SELECT j.clock_id, j.gpu_id, j.steps, j.event_id, j.reason, j.part_ns - j.roof_ns AS part_ns, j.dtype, j.late_member, j.p_value
FROM judged AS j
WHERE j.part_ns > j.roof_ns
UNION ALL
SELECT j.clock_id, j.gpu_id, j.steps, j.event_id, 'computation', j.roof_ns, NULL, NULL, NULL
FROM judged AS j
WHERE j.roof_ns > 0
UNION ALL
SELECT d.clock_id, d.gpu_id, d.steps, NULL, 'unrecorded', d.own_ns, NULL, NULL, NULL
FROM described AS d
WHERE d.state = 'unrecorded'
UNION ALL
SELECT i.clock_id, i.gpu_id, i.steps, i.event_id, i.reason, i.part_ns, NULL, NULL, NULL
FROM v1._why_idle AS i /* inline */;
