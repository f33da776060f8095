-- The pace of one kernel on the first 12 GPUs: the time between the starts of calls, and their durations. If there are
-- more than 300 calls, consecutive calls are grouped as needed; a point is then the median of a group.
-- In:  answer: rows of v1.kernel_pace. {kernel}: as in histogram.sql. {place}: order of captures.
WITH matching AS (
    SELECT a.name, sum(a.duration_ns) AS total_ns
    FROM answer AS a
    WHERE {kernel} IS NULL OR a.name = {kernel} OR contains(a.name, {kernel}) OR a.name GLOB {kernel}
    GROUP BY a.name
),
one AS (
    SELECT m.name, (SELECT count(*) FROM matching) AS matching_kernels
    FROM matching AS m
    ORDER BY m.name = {kernel} DESC, m.total_ns DESC, m.name
    LIMIT 1
),
calls AS (
    SELECT
        a.capture_id, a.rank, a.labels, a.device_id, a.name, a.call_index, a.since_first_ns, a.interval_ns, a.duration_ns,
        o.matching_kernels,
        dense_rank() OVER (ORDER BY {place}, a.capture_id, a.device_id) AS gpu,
        count(*) OVER () AS all_calls,
        (max(a.call_index) OVER () + 299) // 300 AS group_size
    FROM answer AS a
    INNER JOIN one AS o ON o.name = a.name
)
SELECT
    c.capture_id,
    any_value(c.rank) AS rank,
    any_value(c.labels) AS labels,
    c.device_id,
    c.gpu,
    any_value(c.name) AS name,
    min(c.call_index) AS call_index,
    count(*) AS calls,
    median(c.interval_ns) AS interval_ns,
    median(c.duration_ns) AS duration_ns,
    any_value(c.group_size) AS group_size,
    any_value(c.all_calls) AS all_calls,
    any_value(c.matching_kernels) AS matching_kernels,
    (SELECT count(*) FROM calls AS q WHERE q.gpu <= 12) AS shown_calls,
    (SELECT greatest(max(q.gpu) - 12, 0) FROM calls AS q) AS left_out
FROM calls AS c
WHERE c.gpu <= 12
GROUP BY c.capture_id, c.device_id, c.gpu, (c.call_index - 1) // c.group_size
ORDER BY c.gpu, call_index
