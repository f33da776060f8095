-- How long did each iteration of a sampled operator keep the GPU busy?
-- Grain: sampled range, even without launches (v1._operator_work has their GPU work).
-- The time of a collective on one rank includes waiting for the others. If the ranks of a run were recorded (label
-- run), the k-th range of a name on each rank is one call, and its transfer time is the shortest time over ranks: this
-- is target_ns of the first rank's iteration; it is NULL for the others.
-- Clocks and power are those of the device just before its work, NULL if they were not read.
CREATE VIEW v1._operator_iteration AS
WITH iterated AS (
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
        w.rule, w.device_id, w.gpu_start_ns, w.gpu_events, w.busy_ns, w.span_ns, w.kernel_sum_ns
    FROM v1._sample_range AS r
    INNER JOIN main.capture AS c ON c.capture_id = r.capture_id
    LEFT JOIN (
        SELECT capture_id, operator, min(dtype) AS dtype
        FROM main.sample_status
        GROUP BY capture_id, operator
        HAVING count(DISTINCT dtype) = 1
    ) AS t ON t.capture_id = r.capture_id AND t.operator = r.operator
    LEFT JOIN v1._operator_work AS w ON w.capture_id = r.capture_id AND w.annotation_id = r.annotation_id
),
numbered AS (
    SELECT
        i.capture_id, i.annotation_id, i.source, i.rank, i.labels, i.name, i.domain, i.start_ns, i.operator, i.pass,
        i.shape, i.dtype, i.range_ns, i.rule, i.device_id, i.gpu_start_ns, i.gpu_events, i.busy_ns, i.span_ns, i.kernel_sum_ns,
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
    n.shape, n.dtype, n.range_ns, n.rule, n.device_id, n.gpu_events, n.busy_ns, n.span_ns, n.kernel_sum_ns,
    coalesce(m.ranks > 1, false) AS is_matched,
    n.labels['regime'] AS regime,
    -- The last reading before the work, if it is not older than what a reading every 100 ms leaves.
    CASE WHEN n.gpu_start_ns - r.time_ns <= 150000000 THEN r.sm_clock_mhz END AS sm_clock_mhz,
    CASE WHEN n.gpu_start_ns - r.time_ns <= 150000000 THEN r.memory_clock_mhz END AS memory_clock_mhz,
    CASE WHEN n.gpu_start_ns - r.time_ns <= 150000000 THEN r.power_w END AS power_w,
    CASE WHEN m.ranks > 1 THEN CASE WHEN n.capture_id = m.first_capture_id THEN m.transfer_ns END ELSE n.busy_ns END
        AS target_ns
FROM numbered AS n
ASOF LEFT JOIN v1._condition AS r
    ON r.capture_id = n.capture_id AND r.device_id = n.device_id AND r.time_ns <= n.gpu_start_ns
LEFT JOIN matched AS m ON m.capture_id = n.capture_id AND m.annotation_id = n.annotation_id;
