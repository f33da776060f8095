-- How much collective time is hidden under compute, and how much is exposed?
-- Grain: capture × device. Times are unions of intervals: concurrent kernels count once, and touching or empty
-- intervals add nothing. One ordered pass: an event adds to a union the part of it after the latest end so far of that
-- union. Overlap = collectives + compute - union of both.
CREATE VIEW v1.collective_overlap AS
WITH events AS (
    SELECT
        /* by e */
        e.capture_id AS clock_id,
        e.device_id AS gpu_id,
        e.start_ns,
        e.end_ns,
        e.class = 'collective' AS is_collective
    FROM v1._gpu_event AS e /* join e */
    WHERE e.kind IN ('kernel', 'graph') /* filter e */
),
reaches AS (
    SELECT
        /* by */
        clock_id,
        gpu_id,
        start_ns,
        end_ns,
        is_collective,
        coalesce(max(end_ns) FILTER (is_collective) OVER earlier, start_ns) AS collective_reach_ns,
        coalesce(max(end_ns) FILTER (NOT is_collective) OVER earlier, start_ns) AS compute_reach_ns
    FROM events
    WINDOW earlier AS (
        PARTITION BY /* by */ clock_id, gpu_id
        ORDER BY start_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    )
),
unions AS (
    SELECT
        /* by */
        clock_id,
        gpu_id,
        count(*) FILTER (is_collective) AS collective_calls,
        coalesce(sum(greatest(end_ns, collective_reach_ns) - greatest(start_ns, collective_reach_ns))
            FILTER (is_collective), 0) AS collective_ns,
        coalesce(sum(greatest(end_ns, compute_reach_ns) - greatest(start_ns, compute_reach_ns))
            FILTER (NOT is_collective), 0) AS compute_ns,
        sum(greatest(end_ns, collective_reach_ns, compute_reach_ns)
            - greatest(start_ns, collective_reach_ns, compute_reach_ns)) AS either_ns
    FROM reaches
    GROUP BY /* by */ clock_id, gpu_id
)
SELECT
    /* by */
    /* grain */
    clock_id AS capture_id, any_value(c.rank) AS rank, any_value(c.labels) AS labels, gpu_id AS device_id,
    /* end grain */
    sum(collective_calls)::BIGINT AS collective_calls,
    sum(collective_ns)::BIGINT AS collective_ns,
    sum(compute_ns)::BIGINT AS compute_ns,
    sum(collective_ns + compute_ns - either_ns)::BIGINT AS overlapped_ns,
    sum(either_ns - compute_ns)::BIGINT AS exposed_collective_ns,
    100.0 * sum(collective_ns + compute_ns - either_ns) / nullif(sum(collective_ns), 0) AS overlap_percent
FROM unions
/* grain */ LEFT JOIN main.capture AS c ON c.capture_id = clock_id /* end grain */
GROUP BY ALL;

COMMENT ON VIEW v1.collective_overlap IS 'Collective time hidden under compute, and exposed collective time, as unions of intervals. Grain: capture × device.';
COMMENT ON COLUMN v1.collective_overlap.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN v1.collective_overlap.rank IS 'Rank of the capture; NULL if unknown. [-]';
COMMENT ON COLUMN v1.collective_overlap.labels IS 'Labels of the capture: sweep, threads, channels and others.';
COMMENT ON COLUMN v1.collective_overlap.device_id IS 'Device number within the capture. [-]';
COMMENT ON COLUMN v1.collective_overlap.collective_calls IS 'Number of collective kernels. [count]';
COMMENT ON COLUMN v1.collective_overlap.collective_ns IS 'Time during which a collective runs. [ns]';
COMMENT ON COLUMN v1.collective_overlap.compute_ns IS 'Time during which a kernel other than a collective, or a graph replay, runs. [ns]';
COMMENT ON COLUMN v1.collective_overlap.overlapped_ns IS 'Time during which both run. [ns]';
COMMENT ON COLUMN v1.collective_overlap.exposed_collective_ns IS 'Time during which a collective runs and no compute does. [ns]';
COMMENT ON COLUMN v1.collective_overlap.overlap_percent IS 'Share of the collective time that is hidden under compute; NULL without collectives. [percent]';
