-- How long did each instance of a range take on the CPU, on the GPU from its first start to its last end, and in kernels?
-- Grain: range × rule that its capture has answers for. NULL times on the GPU where it holds no GPU work.
CREATE VIEW v1._range_span AS
WITH instances AS (
    SELECT
        /* by r */
        r.capture_id AS clock_id,
        r.annotation_id,
        u.rule,
        r.name,
        r.domain,
        r.style,
        r.duration_ns,
        r.is_warmup
    FROM v1._range_instance AS r /* join r */
    INNER JOIN v1._capture_rule AS u ON u.capture_id = r.capture_id
    WHERE true /* filter r */
),
projections AS (
    SELECT
        m.rule,
        m.capture_id,
        m.annotation_id,
        max(e.end_ns) - min(e.start_ns) AS projected_ns,
        sum(e.duration_ns) FILTER (e.kind = 'kernel') AS kernel_ns,
        count(*) FILTER (e.kind = 'kernel') AS kernels
    FROM v1._gpu_event AS e /* join e */
    INNER JOIN v1._range_member AS m ON m.capture_id = e.capture_id AND m.event_id = e.event_id
    WHERE true /* filter e */
    GROUP BY m.rule, m.capture_id, m.annotation_id
)
SELECT
    /* by i */
    i.clock_id, i.rule, i.name, i.domain, i.style, i.is_warmup, i.duration_ns,
    p.projected_ns, p.kernel_ns, p.kernels
FROM instances AS i
LEFT JOIN projections AS p ON p.capture_id = i.clock_id AND p.annotation_id = i.annotation_id AND p.rule = i.rule;
