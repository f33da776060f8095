-- How long did each iteration of a sampled operator keep the GPU busy?
-- Grain: sampled range, even without launches. Its GPU work is everything launched inside the range by any thread of
-- the process (rule process: autograd launches the backward from its own thread), including copies and memsets; if
-- launches were not recorded, everything that started inside it (rule time). Busy time is the union of the intervals.
-- The time of a collective on one rank includes waiting for the others. If the ranks of a run were recorded (label
-- run), the k-th range of a name on each rank is one call, and its transfer time is the shortest time over ranks: this
-- is target_ns of the first rank's iteration; it is NULL for the others.
CREATE VIEW v1._operator_iteration AS
WITH RECURSIVE inside AS (
    SELECT r.capture_id, r.annotation_id, r.annotation_id AS member_id
    FROM v1._sample_range AS r
    UNION
    SELECT i.capture_id, i.annotation_id, a.annotation_id AS member_id
    FROM inside AS i
    INNER JOIN main.annotation AS a ON a.capture_id = i.capture_id AND a.parent_id = i.member_id
),
launched AS (
    SELECT DISTINCT i.capture_id, i.annotation_id, m.event_id, m.rule
    FROM inside AS i
    INNER JOIN main.annotation_kernel AS m ON m.capture_id = i.capture_id AND m.annotation_id = i.member_id
    WHERE m.rule IN ('process', 'time')
),
named AS (
    SELECT
        n.name,
        regexp_extract(n.name, 'c10::Half|__half|c10::BFloat16|__nv_bfloat16|hip_bfloat16|\b(?:double|float)\b') AS word
    FROM (SELECT DISTINCT e.name FROM main.kernel_event AS e) AS n
),
typed AS (
    SELECT
        t.input_types,
        regexp_extract(t.input_types, '"(c10::Half|c10::BFloat16|float|double)"', 1) AS word
    FROM (SELECT DISTINCT o.input_types FROM main.op AS o) AS t
),
events AS (
    SELECT
        l.capture_id, l.annotation_id, l.rule, e.event_id, e.device_id,
        e.start_ns,
        e.duration_ns,
        e.start_ns + e.duration_ns AS end_ns,
        nullif(t.word, '') AS input_word,
        nullif(n.word, '') AS kernel_word,
        max(e.start_ns + e.duration_ns) OVER (
            PARTITION BY l.capture_id, l.annotation_id
            ORDER BY e.start_ns, e.event_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS covered_to_ns
    FROM launched AS l
    INNER JOIN main.kernel_event AS e
        ON e.capture_id = l.capture_id AND e.event_id = l.event_id AND e.time_fault IS NULL
    LEFT JOIN main.op AS o ON o.capture_id = e.capture_id AND o.op_id = e.op_id
    LEFT JOIN typed AS t ON t.input_types = o.input_types
    LEFT JOIN named AS n ON n.name = e.name
),
works AS (
    SELECT
        e.capture_id, e.annotation_id,
        min(e.rule) AS rule,
        min(e.device_id) AS device_id,
        sum(greatest(e.end_ns - greatest(e.start_ns, coalesce(e.covered_to_ns, e.start_ns)), 0))::BIGINT AS busy_ns,
        max(e.end_ns) - min(e.start_ns) AS span_ns,
        sum(e.duration_ns)::BIGINT AS kernel_sum_ns,
        arg_min(e.input_word, (e.start_ns, e.event_id)) AS input_word,
        arg_min(e.kernel_word, (e.start_ns, e.event_id)) AS kernel_word
    FROM events AS e
    GROUP BY e.capture_id, e.annotation_id
),
iterated AS (
    SELECT
        r.capture_id, r.annotation_id,
        c.source, c.rank, c.labels,
        r.name, r.domain, r.start_ns, r.operator, r.pass, r.shape,
        coalesce(r.dtype, t.dtype, CASE coalesce(w.input_word, w.kernel_word)
            WHEN 'c10::Half' THEN 'fp16'
            WHEN '__half' THEN 'fp16'
            WHEN 'c10::BFloat16' THEN 'bf16'
            WHEN '__nv_bfloat16' THEN 'bf16'
            WHEN 'hip_bfloat16' THEN 'bf16'
            WHEN 'float' THEN 'fp32'
            WHEN 'double' THEN 'fp64'
        END, c.labels['dtype']) AS dtype,
        r.duration_ns AS range_ns,
        w.rule, w.device_id, w.busy_ns, w.span_ns, w.kernel_sum_ns
    FROM v1._sample_range AS r
    INNER JOIN main.capture AS c ON c.capture_id = r.capture_id
    LEFT JOIN (
        SELECT capture_id, operator, min(dtype) AS dtype
        FROM main.sample_status
        GROUP BY capture_id, operator
        HAVING count(DISTINCT dtype) = 1
    ) AS t ON t.capture_id = r.capture_id AND t.operator = r.operator
    LEFT JOIN works AS w ON w.capture_id = r.capture_id AND w.annotation_id = r.annotation_id
),
numbered AS (
    SELECT
        i.capture_id, i.annotation_id, i.source, i.rank, i.labels, i.name, i.domain, i.start_ns, i.operator, i.pass,
        i.shape, i.dtype, i.range_ns, i.rule, i.device_id, i.busy_ns, i.span_ns, i.kernel_sum_ns,
        i.labels['run'] AS run_label,
        row_number() OVER (PARTITION BY i.capture_id, i.name ORDER BY i.start_ns, i.annotation_id) AS call_number
    FROM iterated AS i
),
matched AS (
    SELECT
        n.capture_id, n.annotation_id,
        min(n.capture_id) OVER call AS first_capture_id,
        count(n.busy_ns) OVER call AS ranks,
        min(n.busy_ns) OVER call AS transfer_ns
    FROM numbered AS n
    WHERE n.pass = 'comm' AND n.run_label IS NOT NULL
    WINDOW call AS (PARTITION BY n.run_label, n.name, n.call_number)
)
SELECT
    n.capture_id, n.annotation_id, n.source, n.rank, n.labels, n.name, n.domain, n.start_ns, n.operator, n.pass,
    n.shape, n.dtype, n.range_ns, n.rule, n.device_id, n.busy_ns, n.span_ns, n.kernel_sum_ns,
    coalesce(m.ranks > 1, false) AS is_matched,
    CASE WHEN m.ranks > 1 THEN CASE WHEN n.capture_id = m.first_capture_id THEN m.transfer_ns END ELSE n.busy_ns END
        AS target_ns
FROM numbered AS n
LEFT JOIN matched AS m ON m.capture_id = n.capture_id AND m.annotation_id = n.annotation_id;
