-- How busy each GPU is, by window: the first 64 GPUs.
-- In:  answer: rows of v1.gpu_utilization. {place}: order of captures.
WITH placed AS (
    SELECT a.*, dense_rank() OVER (ORDER BY {place}, a.capture_id, a.device_id) AS gpu
    FROM answer AS a
)
SELECT
    p.capture_id, p.rank, p.labels, p.device_id, p.gpu, p.window_index, p.since_ns,
    p.since_ns + p.window_ns AS until_ns,
    p.busy_percent,
    greatest(max(p.gpu) OVER () - 64, 0) AS left_out
FROM placed AS p
QUALIFY p.gpu <= 64
ORDER BY p.gpu, p.window_index
