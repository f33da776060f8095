-- Which kernel of an ordinary run does each dispatch with Nsight Compute's counters correspond to?
-- Grain: dispatch with counters of Nsight Compute. ncu records neither times nor operators, and runs each kernel alone.
-- The k-th dispatch of a short name, grid and block is matched with the k-th such kernel of an ordinary capture of the same
-- run: one with equal labels, and of the same rank if both are known. Short names, because ncu spells namespaces and
-- template arguments differently. Of several captures, the one with most matches is used. A dispatch that is not matched
-- has no matched kernel.
CREATE VIEW v1.counter_match AS
WITH counted AS (
    SELECT
        e.capture_id, e.event_id, e.rank, e.labels, e.device_id,
        e.name, e.short_name, e.class, e.duration_ns,
        e.grid_x, e.grid_y, e.grid_z, e.block_x, e.block_y, e.block_z,
        row_number() OVER (
            PARTITION BY e.capture_id, e.short_name, e.grid_x, e.grid_y, e.grid_z, e.block_x, e.block_y, e.block_z
            ORDER BY e.event_id
        ) AS place
    FROM v1._recorded_event AS e
    WHERE e.is_counted AND e.kind = 'kernel' AND e.source = 'ncu' /* filter e */
),
plain AS (
    SELECT
        p.capture_id, p.event_id, p.rank, p.labels, p.op_id, p.duration_ns, p.short_name,
        p.grid_x, p.grid_y, p.grid_z, p.block_x, p.block_y, p.block_z,
        row_number() OVER (
            PARTITION BY p.capture_id, p.short_name, p.grid_x, p.grid_y, p.grid_z, p.block_x, p.block_y, p.block_z
            ORDER BY coalesce(l.start_ns, p.start_ns), p.start_ns, p.event_id
        ) AS place
    FROM v1._gpu_event AS p
    LEFT JOIN main.launch AS l ON l.capture_id = p.capture_id AND l.launch_id = p.launch_id
    WHERE p.kind = 'kernel' AND EXISTS (SELECT 1 FROM counted AS c WHERE c.labels = p.labels)
),
pairs AS (
    SELECT
        c.capture_id, c.event_id, p.capture_id AS matched_capture_id, p.event_id AS matched_event_id,
        p.duration_ns AS matched_duration_ns, p.op_id,
        count(*) OVER (PARTITION BY c.capture_id, p.capture_id) AS matches
    FROM counted AS c
    INNER JOIN plain AS p
        ON p.short_name = c.short_name AND p.place = c.place AND p.labels = c.labels
        AND coalesce(p.rank = c.rank, true)
        AND p.grid_x = c.grid_x AND p.grid_y = c.grid_y AND p.grid_z = c.grid_z
        AND p.block_x = c.block_x AND p.block_y = c.block_y AND p.block_z = c.block_z
),
chosen AS (
    SELECT r.capture_id, arg_min(r.matched_capture_id, (-r.matches, r.matched_capture_id)) AS matched_capture_id
    FROM pairs AS r
    GROUP BY r.capture_id
)
SELECT
    c.capture_id, c.rank, c.labels, c.device_id,
    c.event_id,
    c.name, c.class,
    c.grid_x, c.grid_y, c.grid_z, c.block_x, c.block_y, c.block_z,
    nullif(c.duration_ns, 0) AS duration_ns,
    r.matched_capture_id,
    r.matched_event_id,
    r.matched_duration_ns,
    o.name AS op_name,
    o.input_dims,
    n.counters,
    c.short_name
FROM counted AS c
LEFT JOIN chosen AS h ON h.capture_id = c.capture_id
LEFT JOIN pairs AS r
    ON r.capture_id = c.capture_id AND r.event_id = c.event_id AND r.matched_capture_id = h.matched_capture_id
LEFT JOIN main.op AS o ON o.capture_id = r.matched_capture_id AND o.op_id = r.op_id
LEFT JOIN v1._counted_dispatch AS n ON n.capture_id = c.capture_id AND n.event_id = c.event_id;

COMMENT ON VIEW v1.counter_match IS 'Nsight Compute''s counters beside the kernel of an ordinary run that they belong to. Grain: dispatch with counters of Nsight Compute.';
COMMENT ON COLUMN v1.counter_match.capture_id IS 'Capture of Nsight Compute. [-]';
COMMENT ON COLUMN v1.counter_match.rank IS 'Rank of the capture; NULL if unknown. [-]';
COMMENT ON COLUMN v1.counter_match.labels IS 'Labels of the capture: sweep, threads, channels and others.';
COMMENT ON COLUMN v1.counter_match.device_id IS 'Device number within the capture. [-]';
COMMENT ON COLUMN v1.counter_match.event_id IS 'Number of the dispatch within the capture (kernel_event.event_id). [-]';
COMMENT ON COLUMN v1.counter_match.name IS 'Kernel name as Nsight Compute wrote it.';
COMMENT ON COLUMN v1.counter_match.class IS 'Class of the kernel: matmul, collective, elementwise …';
COMMENT ON COLUMN v1.counter_match.grid_x IS 'Grid size in blocks, x. [blocks]';
COMMENT ON COLUMN v1.counter_match.grid_y IS 'Grid size in blocks, y. [blocks]';
COMMENT ON COLUMN v1.counter_match.grid_z IS 'Grid size in blocks, z. [blocks]';
COMMENT ON COLUMN v1.counter_match.block_x IS 'Block size in threads, x. [threads]';
COMMENT ON COLUMN v1.counter_match.block_y IS 'Block size in threads, y. [threads]';
COMMENT ON COLUMN v1.counter_match.block_z IS 'Block size in threads, z. [threads]';
COMMENT ON COLUMN v1.counter_match.duration_ns IS 'Duration while counters were collected (gpu__time_duration.sum); NULL if not collected. [ns]';
COMMENT ON COLUMN v1.counter_match.matched_capture_id IS 'Capture that holds the matched kernel; NULL if none was found. [-]';
COMMENT ON COLUMN v1.counter_match.matched_event_id IS 'The matched kernel (kernel_event.event_id in matched_capture_id); NULL if none was found. [-]';
COMMENT ON COLUMN v1.counter_match.matched_duration_ns IS 'Its duration in the ordinary run. [ns]';
COMMENT ON COLUMN v1.counter_match.op_name IS 'Operator that launched it; NULL if not recorded.';
COMMENT ON COLUMN v1.counter_match.input_dims IS 'Input shapes of that operator, as JSON text as recorded; NULL if not recorded.';
COMMENT ON COLUMN v1.counter_match.counters IS 'All counters of the dispatch by name, in bytes, ns, hz, or the unit that Nsight Compute wrote. [-]';
COMMENT ON COLUMN v1.counter_match.short_name IS 'Kernel name without return type, namespaces, template arguments and parameters, like nsys''s shortName.';
