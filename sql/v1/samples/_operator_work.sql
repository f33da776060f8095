-- How long did the work launched by each iteration of a sampled operator keep the GPU busy, and on what element type?
-- Grain: sampled range with GPU work. Its work is everything launched inside the range by any thread of the process
-- (rule process: autograd launches the backward from its own thread), including copies and memsets; if launches were not
-- recorded, everything that started inside it (rule time). Busy time is the union of the intervals. input_word and
-- kernel_word are the first element type in the inputs of an operator, and in the name of a kernel.
CREATE VIEW v1._operator_work AS
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
)
SELECT
    e.capture_id, e.annotation_id,
    min(e.rule) AS rule,
    min(e.device_id) AS device_id,
    min(e.start_ns) AS gpu_start_ns,
    count(*) AS gpu_events,
    sum(greatest(e.end_ns - greatest(e.start_ns, coalesce(e.covered_to_ns, e.start_ns)), 0))::BIGINT AS busy_ns,
    max(e.end_ns) - min(e.start_ns) AS span_ns,
    sum(e.duration_ns)::BIGINT AS kernel_sum_ns,
    arg_min(e.input_word, (e.start_ns, e.event_id)) AS input_word,
    arg_min(e.kernel_word, (e.start_ns, e.event_id)) AS kernel_word
FROM events AS e
GROUP BY e.capture_id, e.annotation_id;
