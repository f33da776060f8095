-- How far does the host run ahead: how many kernels are launched but not finished when the next one is launched?
-- Grain: capture × device. The depth at a launch call is the number of kernels and graph replays of the device, on any
-- stream, that were launched by earlier calls and end after this call starts. At depth 0 the device had nothing left to
-- run, so it is host-bound. Method: a running count over call starts and kernel ends in time order; at equal times,
-- ends come first, then calls by launch_id. Filters select the counted calls, not the contents of the queue.
-- A kernel that ends before its call starts, by the recorded clocks, leaves the queue immediately after the call.
CREATE VIEW v1.queue_depth AS
WITH chosen AS (
    SELECT
        /* by e */
        e.capture_id AS clock_id,
        e.device_id AS gpu_id,
        e.launch_id,
        count(*) AS kernels
    FROM v1._gpu_event AS e /* join e */
    WHERE e.kind IN ('kernel', 'graph') /* filter e */
    GROUP BY /* by e */ e.capture_id, e.device_id, e.launch_id
),
launched AS (
    SELECT
        q.capture_id AS clock_id,
        q.device_id AS gpu_id,
        q.launch_id,
        l.start_ns AS launch_ns,
        q.end_ns
    FROM v1._gpu_event AS q
    INNER JOIN v1._timed_launch AS l ON l.capture_id = q.capture_id AND l.launch_id = q.launch_id
    WHERE q.kind IN ('kernel', 'graph')
),
-- A kernel that ends before its call starts, by the recorded clocks, leaves the queue immediately after the call.
changes AS (
    SELECT clock_id, gpu_id, launch_id, launch_ns AS at_ns, count(*) AS added
    FROM launched
    GROUP BY clock_id, gpu_id, launch_id, launch_ns
    UNION ALL
    SELECT clock_id, gpu_id, NULL, greatest(end_ns, launch_ns + 1), -count(*)
    FROM launched
    GROUP BY clock_id, gpu_id, greatest(end_ns, launch_ns + 1)
),
depths AS (
    SELECT
        clock_id,
        gpu_id,
        launch_id,
        coalesce(sum(added) OVER (
            PARTITION BY clock_id, gpu_id
            ORDER BY at_ns, launch_id NULLS FIRST ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ), 0)::BIGINT AS depth
    FROM changes
)
SELECT
    /* by w */
    /* grain */
    w.clock_id AS capture_id, any_value(c.rank) AS rank, any_value(c.labels) AS labels, w.gpu_id AS device_id,
    /* end grain */
    nullif(count(d.depth), 0) AS launches,
    avg(d.depth) AS mean_depth,
    median(d.depth) AS median_depth,
    max(d.depth) AS max_depth,
    CASE WHEN count(d.depth) > 0 THEN count(*) FILTER (d.depth = 0) END AS empty_launches,
    100.0 * count(*) FILTER (d.depth = 0) / nullif(count(d.depth), 0) AS empty_percent,
    coalesce(sum(w.kernels) FILTER (d.depth IS NULL), 0)::BIGINT AS kernels_without_launch
FROM chosen AS w
LEFT JOIN depths AS d
    ON d.clock_id = w.clock_id AND d.gpu_id IS NOT DISTINCT FROM w.gpu_id AND d.launch_id = w.launch_id
/* grain */ LEFT JOIN main.capture AS c ON c.capture_id = w.clock_id /* end grain */
GROUP BY ALL;

COMMENT ON VIEW v1.queue_depth IS 'Kernels launched but not finished at each launch call: how far the host runs ahead. Grain: capture × device.';
COMMENT ON COLUMN v1.queue_depth.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN v1.queue_depth.rank IS 'Rank of the capture; NULL if unknown. [-]';
COMMENT ON COLUMN v1.queue_depth.labels IS 'Labels of the capture: sweep, threads, channels and others.';
COMMENT ON COLUMN v1.queue_depth.device_id IS 'Device number within the capture. [-]';
COMMENT ON COLUMN v1.queue_depth.launches IS 'Number of calls that launched kernels or graphs; NULL, like all depths, if none was recorded. [count]';
COMMENT ON COLUMN v1.queue_depth.mean_depth IS 'Mean queue depth: kernels launched by earlier calls that have not finished. [count]';
COMMENT ON COLUMN v1.queue_depth.median_depth IS 'Median queue depth, mean of the middle two. [count]';
COMMENT ON COLUMN v1.queue_depth.max_depth IS 'Largest. [count]';
COMMENT ON COLUMN v1.queue_depth.empty_launches IS 'Calls at queue depth 0: the device had finished everything launched. [count]';
COMMENT ON COLUMN v1.queue_depth.empty_percent IS 'Share of the calls at queue depth 0. [percent]';
COMMENT ON COLUMN v1.queue_depth.kernels_without_launch IS 'Kernels and graph replays whose launch was not recorded; not in any depth. [count]';
