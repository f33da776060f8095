-- How long do the parts of attention (scores, softmax, values) take, compared with their FLOPs?
-- Grain: capture × rule × part, over ranges named after the parts, excluding warm-up (see v1._range_instance). FLOPs
-- per instance: 2·b·h·s²·d for scores and for values, 5·b·h·s² for the softmax. Shapes come from the operators inside,
-- if recorded; else from the capture's labels batch, heads, sequence and head_dim (or b, h, s, d).
CREATE VIEW v1.attention_split AS
WITH instances AS (
    SELECT
        /* by r */
        r.capture_id AS clock_id,
        r.annotation_id,
        u.rule,
        v1._attention_part(r.name) AS part,
        coalesce(r.labels['batch'], r.labels['b'])::VARCHAR AS batch,
        coalesce(r.labels['heads'], r.labels['h'])::VARCHAR AS heads,
        coalesce(r.labels['sequence'], r.labels['s'])::VARCHAR AS sequence,
        coalesce(r.labels['head_dim'], r.labels['d'])::VARCHAR AS head_dim
    FROM v1._range_instance AS r /* join r */
    INNER JOIN v1._capture_rule AS u ON u.capture_id = r.capture_id
    WHERE NOT r.is_warmup /* filter r */
),
labelled AS (
    SELECT
        clock_id, annotation_id,
        TRY_CAST(batch AS BIGINT) * TRY_CAST(heads AS BIGINT) * TRY_CAST(sequence AS BIGINT)
        * TRY_CAST(sequence AS BIGINT) * CASE part WHEN 'softmax' THEN 5 ELSE 2 * TRY_CAST(head_dim AS BIGINT) END AS flops
    FROM instances
    WHERE part IS NOT NULL
    GROUP BY ALL
),
events AS (
    SELECT
        m.rule, m.capture_id, m.annotation_id, e.op_id, e.class, e.kind, e.start_ns, e.end_ns, e.duration_ns
    FROM v1._gpu_event AS e /* join e */
    INNER JOIN v1._range_member AS m ON m.capture_id = e.capture_id AND m.event_id = e.event_id
    INNER JOIN labelled AS i ON i.clock_id = m.capture_id AND i.annotation_id = m.annotation_id
    WHERE true /* filter e */
),
times AS (
    SELECT
        rule, capture_id, annotation_id,
        max(end_ns) - min(start_ns) AS projected_ns,
        sum(duration_ns) FILTER (kind = 'kernel') AS kernel_ns,
        coalesce(sum(duration_ns) FILTER (class = 'matmul'), 0) AS matmul_ns
    FROM events
    GROUP BY rule, capture_id, annotation_id
),
-- The last dimension of the second factor, and all of the first; in addmm and baddbmm a summand precedes them.
operands AS (
    SELECT
        o.capture_id, o.op_id, o.name,
        CASE WHEN o.name IN ('aten::addmm', 'aten::baddbmm') THEN 2 ELSE 1 END AS first_no,
        CASE WHEN json_valid(o.input_dims) THEN TRY_CAST(o.input_dims::JSON AS JSON[]) END AS dims
    FROM main.op AS o
    WHERE o.name IN ('aten::mm', 'aten::bmm', 'aten::addmm', 'aten::baddbmm', 'aten::_softmax', 'aten::softmax')
),
op_flops AS (
    SELECT
        p.capture_id, p.op_id, p.name LIKE '%softmax' AS is_softmax,
        list_product(TRY_CAST(p.dims[p.first_no] AS BIGINT[])) AS items,
        list_last(TRY_CAST(p.dims[p.first_no + 1] AS BIGINT[])) AS columns
    FROM operands AS p
),
recorded AS (
    SELECT
        e.rule, e.capture_id, e.annotation_id,
        sum(5 * f.items) FILTER (f.is_softmax) AS softmax_flops,
        sum(2 * f.items * f.columns) FILTER (NOT f.is_softmax) AS matmul_flops
    FROM (
        SELECT DISTINCT rule, capture_id, annotation_id, op_id
        FROM events
    ) AS e
    INNER JOIN op_flops AS f ON f.capture_id = e.capture_id AND f.op_id = e.op_id
    GROUP BY e.rule, e.capture_id, e.annotation_id
),
measured AS (
    SELECT
        /* by i */
        i.clock_id, i.rule, i.part, t.projected_ns, t.kernel_ns, t.matmul_ns,
        CASE i.part WHEN 'softmax' THEN d.softmax_flops ELSE d.matmul_flops END AS recorded_flops,
        l.flops AS labelled_flops
    FROM instances AS i
    INNER JOIN times AS t
        ON t.capture_id = i.clock_id AND t.annotation_id = i.annotation_id AND t.rule = i.rule
    INNER JOIN labelled AS l ON l.clock_id = i.clock_id AND l.annotation_id = i.annotation_id
    LEFT JOIN recorded AS d
        ON d.capture_id = i.clock_id AND d.annotation_id = i.annotation_id AND d.rule = i.rule
),
parts AS (
    SELECT
        /* by */
        /* grain */ clock_id, /* end grain */
        rule,
        part,
        count(*) AS instances,
        sum(projected_ns) / count(*) AS projected_avg_ns,
        median(projected_ns) AS projected_median_ns,
        sum(kernel_ns) / count(*) AS kernel_avg_ns,
        sum(matmul_ns) / count(*) AS matmul_avg_ns,
        sum(coalesce(recorded_flops, labelled_flops)) / count(*) AS flops,
        CASE
            WHEN count(recorded_flops) = count(*) THEN 'operators'
            WHEN count(coalesce(recorded_flops, labelled_flops)) = count(*) THEN 'labels'
        END AS shapes_from
    FROM measured
    GROUP BY ALL
)
SELECT
    /* by p */
    /* grain */ p.clock_id AS capture_id, c.rank, c.labels, /* end grain */
    p.rule,
    p.part,
    p.instances,
    p.projected_avg_ns,
    p.projected_median_ns,
    p.kernel_avg_ns,
    p.matmul_avg_ns,
    p.shapes_from,
    CASE WHEN p.shapes_from IS NOT NULL THEN p.flops END AS flops,
    CASE WHEN p.shapes_from IS NOT NULL THEN p.flops / nullif(p.kernel_avg_ns, 0) / 1000 END AS tflops,
    p.kernel_avg_ns / nullif(s.kernel_avg_ns, 0) AS time_ratio,
    CASE WHEN p.shapes_from IS NOT NULL AND s.shapes_from IS NOT NULL THEN p.flops / nullif(s.flops, 0) END AS flops_ratio
FROM parts AS p
LEFT JOIN parts AS s
    ON s.part = 'scores' AND s.rule = p.rule /* grain */ AND s.clock_id = p.clock_id /* end grain */ /* using p s */
/* grain */ LEFT JOIN main.capture AS c ON c.capture_id = p.clock_id /* end grain */;

COMMENT ON VIEW v1.attention_split IS 'Scores, softmax and values of attention: time against FLOPs, from ranges with these names. There are rows for each rule of range membership, which do not add up: select one (WHERE rule = ''process''). Grain: capture × rule × part.';
COMMENT ON COLUMN v1.attention_split.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN v1.attention_split.rank IS 'Rank of the capture; NULL if unknown. [-]';
COMMENT ON COLUMN v1.attention_split.labels IS 'Labels of the capture: sweep, threads, channels and others.';
COMMENT ON COLUMN v1.attention_split.rule IS 'How GPU events are assigned to ranges: thread (launched inside, on the thread of the range), process (launched inside, on any thread, such as autograd''s), time (started inside; used if launches were not recorded). There is a row for each rule: select one. The report uses process.';
COMMENT ON COLUMN v1.attention_split.part IS 'scores, softmax or value.';
COMMENT ON COLUMN v1.attention_split.instances IS 'Number of instances with GPU work, excluding warm-up. [count]';
COMMENT ON COLUMN v1.attention_split.projected_avg_ns IS 'Mean time on the GPU per instance, from first start to last end. [ns]';
COMMENT ON COLUMN v1.attention_split.projected_median_ns IS 'Median of that time: one instance that takes long does not change it. [ns]';
COMMENT ON COLUMN v1.attention_split.kernel_avg_ns IS 'Mean sum of kernel durations per instance. [ns]';
COMMENT ON COLUMN v1.attention_split.matmul_avg_ns IS 'Part of that in kernels of class matmul. [ns]';
COMMENT ON COLUMN v1.attention_split.shapes_from IS 'Source of the shapes: operators (recorded) or labels (batch, heads, sequence, head_dim); NULL if unknown.';
COMMENT ON COLUMN v1.attention_split.flops IS 'Floating-point operations per instance: 2·b·h·s²·d for scores and value, 5·b·h·s² for softmax; NULL without shapes. [FLOP]';
COMMENT ON COLUMN v1.attention_split.tflops IS 'Achieved rate: FLOPs / kernel time. [TFLOP/s]';
COMMENT ON COLUMN v1.attention_split.time_ratio IS 'Kernel time of this part divided by that of the scores. [ratio]';
COMMENT ON COLUMN v1.attention_split.flops_ratio IS 'FLOPs of this part divided by those of the scores. [ratio]';
