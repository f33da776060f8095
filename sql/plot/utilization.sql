-- How the time of each GPU is divided, by window and part: the first 12 GPUs.
-- In:  answer: rows of v1.gpu_utilization. {place}: order of captures.
WITH placed AS (
    SELECT a.*, dense_rank() OVER (ORDER BY {place}, a.capture_id, a.device_id) AS gpu
    FROM answer AS a
),
parts AS (
    SELECT
        p.capture_id, p.rank, p.labels, p.device_id, p.gpu, p.window_index, p.since_ns,
        p.since_ns + p.window_ns AS until_ns,
        unnest([
            {'part': 'computation', 'low': 0.0, 'percent': p.computation_percent},
            {'part': 'exposed collective', 'low': p.computation_percent, 'percent': p.exposed_collective_percent},
            {
                'part': 'exposed copy',
                'low': p.computation_percent + p.exposed_collective_percent,
                'percent': p.exposed_copy_percent
            },
            {'part': 'other work', 'low': p.busy_percent, 'percent': p.other_percent}
        ]) AS share,
        greatest(max(p.gpu) OVER () - 12, 0) AS left_out
    FROM placed AS p
)
SELECT
    s.capture_id, s.rank, s.labels, s.device_id, s.gpu, s.window_index, s.since_ns, s.until_ns,
    s.share.part AS part,
    s.share.percent AS percent,
    s.share.low AS low_percent,
    s.share.low + s.share.percent AS high_percent,
    s.left_out
FROM parts AS s
WHERE s.gpu <= 12 AND s.share.percent > 0
ORDER BY s.gpu, s.window_index, low_percent
