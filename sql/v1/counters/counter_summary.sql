-- What do the hardware counters show for each kernel?
-- Grain: kernel name. Durations are those of its dispatches with counters, each once. The sum and mean of a counter are
-- over the dispatches for which it was collected; these differ if several runs collected different counters.
CREATE VIEW v1.counter_summary AS
WITH dispatches AS (
    SELECT
        /* by e */
        e.name,
        e.class,
        CASE WHEN e.time_fault IS NULL AND (e.start_ns <> 0 OR e.duration_ns <> 0) THEN e.duration_ns END AS duration_ns,
        c.sq_busy_cu_cycles,
        c.available_cu_cycles,
        c.counters
    FROM v1._recorded_event AS e /* join e */
    INNER JOIN v1._counted_dispatch AS c ON c.capture_id = e.capture_id AND c.event_id = e.event_id
    WHERE true /* filter e */
),
kernels AS (
    SELECT
        /* by */
        name,
        class,
        count(*) AS calls,
        sum(duration_ns) AS total_ns,
        avg(duration_ns) AS avg_ns,
        100.0 * sum(sq_busy_cu_cycles) FILTER (available_cu_cycles IS NOT NULL) / sum(available_cu_cycles) AS cu_busy_percent
    FROM dispatches
    GROUP BY /* by */ name, class
),
entries AS (
    SELECT /* by */ name, class, unnest(map_entries(counters)) AS entry
    FROM dispatches
),
sums AS (
    SELECT
        /* by */
        name,
        class,
        entry.key AS counter,
        sum(entry.value) AS counter_sum,
        avg(entry.value) AS counter_mean
    FROM entries
    GROUP BY /* by */ name, class, entry.key
),
maps AS (
    SELECT
        /* by */
        name,
        class,
        map_from_entries(list((counter, counter_mean) ORDER BY counter)) AS counter_means,
        map_from_entries(list((counter, counter_sum) ORDER BY counter)) AS counter_sums
    FROM sums
    GROUP BY /* by */ name, class
)
SELECT
    /* by s */
    s.name,
    s.class,
    s.calls,
    s.total_ns::BIGINT AS total_ns,
    s.avg_ns,
    s.cu_busy_percent,
    m.counter_means,
    m.counter_sums,
    v1._short_name(s.name) AS short_name
FROM kernels AS s
INNER JOIN maps AS m ON m.name = s.name AND m.class = s.class /* using s m */;

COMMENT ON VIEW v1.counter_summary IS 'Hardware counters by kernel name, with the time of the counted dispatches. Grain: kernel name.';
COMMENT ON COLUMN v1.counter_summary.name IS 'Kernel name as recorded.';
COMMENT ON COLUMN v1.counter_summary.class IS 'Class of the kernel: matmul, collective, elementwise …';
COMMENT ON COLUMN v1.counter_summary.calls IS 'Number of dispatches with counters. [count]';
COMMENT ON COLUMN v1.counter_summary.total_ns IS 'Sum of their durations during collection, each dispatch once; NULL if not recorded. [ns]';
COMMENT ON COLUMN v1.counter_summary.avg_ns IS 'Mean of these durations. [ns]';
COMMENT ON COLUMN v1.counter_summary.cu_busy_percent IS 'SQ_BUSY_CU_CYCLES / (compute units × maximum clock × duration); a lower bound if the GPU ran below its maximum clock. NULL if any of these was not captured. [percent]';
COMMENT ON COLUMN v1.counter_summary.counter_means IS 'Mean per dispatch of each counter by name, in the counter''s own unit. [-]';
COMMENT ON COLUMN v1.counter_summary.counter_sums IS 'Sum over dispatches of each counter by name, in the counter''s own unit. [-]';
COMMENT ON COLUMN v1.counter_summary.short_name IS 'Kernel name without return type, namespaces, template arguments and parameters, like nsys''s shortName.';
