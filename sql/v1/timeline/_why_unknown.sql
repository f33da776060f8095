-- What can v1.why not know about a capture, and what would have to be recorded? Grain: capture × gap in the recording.
CREATE VIEW v1._why_unknown AS
WITH facts AS (
    SELECT
        c.capture_id, c.rank, c.world_size,
        EXISTS (SELECT 1 FROM v1._step AS t WHERE t.capture_id = c.capture_id AND t.step IS NOT NULL) AS has_steps,
        EXISTS (SELECT 1 FROM main.op AS o WHERE o.capture_id = c.capture_id) AS has_ops,
        EXISTS (SELECT 1 FROM main.op AS o WHERE o.capture_id = c.capture_id AND o.input_dims IS NOT NULL) AS has_shapes,
        EXISTS (SELECT 1 FROM main.frame AS f WHERE f.capture_id = c.capture_id) AS has_stacks,
        EXISTS (SELECT 1 FROM main.kernel_event AS e WHERE e.capture_id = c.capture_id AND e.launch_id IS NOT NULL) AS has_launches,
        EXISTS (SELECT 1 FROM main.kernel_event AS e WHERE e.capture_id = c.capture_id AND e.kind = 'graph') AS has_graphs,
        EXISTS (SELECT 1 FROM main.clock_fault AS f WHERE f.capture_id = c.capture_id) AS is_apart,
        EXISTS (
            SELECT 1 FROM main.device AS d INNER JOIN v1._device_peak AS p ON p.name = d.name
            WHERE d.capture_id = c.capture_id
        ) AS has_peaks
    FROM main.capture AS c
    WHERE c.status IS DISTINCT FROM 'no_gpu_activity'
),
sets AS (
    SELECT s.capture_id, s.set_id, s.rank
    FROM v1._capture_set AS s
),
recorded AS (
    SELECT s.set_id, count(DISTINCT s.rank) AS ranks
    FROM sets AS s
    GROUP BY s.set_id
),
said AS (
    SELECT
        f.capture_id,
        unnest([
            CASE WHEN NOT f.has_steps THEN 'no steps are marked, so shares are of the time from the first to the last GPU event '
                || '(call prof.step(), or choose ranges with --step-range)' END,
            CASE WHEN NOT f.has_launches THEN 'the calls that launched GPU work were not recorded, so why the GPU idles is not known' END,
            CASE WHEN f.is_apart THEN 'the clocks of calls and kernels lie apart, so why the GPU idles is not known' END,
            CASE
                WHEN NOT f.has_ops THEN 'operators were not recorded, so how far kernels are from the roof is not known'
                WHEN NOT f.has_shapes
                    THEN 'shapes were not recorded, so how far kernels are from the roof is not known (record_shapes=True)'
                WHEN NOT f.has_peaks THEN 'main.device_peak has no rates of this device, so how far kernels are from the roof is not known'
            END,
            CASE WHEN NOT f.has_stacks
                THEN 'Python stacks were not recorded, so which line the host runs is not known (with_stack=True)' END,
            CASE WHEN f.has_graphs THEN 'graph replays recorded only as a whole count as computation; their kernels are not known' END,
            CASE WHEN r.ranks < f.world_size
                THEN format('{:d} of {:d} ranks are in this file, so whom they wait for in collectives is known only in part',
                    r.ranks, f.world_size) END,
            CASE WHEN f.world_size > 1 AND r.ranks <= 1
                THEN 'waiting and transfer in collectives cannot be told apart with one rank' END
        ]) AS said,
        unnest(range(8)) AS place
    FROM facts AS f
    LEFT JOIN sets AS s ON s.capture_id = f.capture_id
    LEFT JOIN recorded AS r ON r.set_id = s.set_id
)
SELECT u.capture_id, u.place, u.said
FROM said AS u
WHERE u.said IS NOT NULL;
