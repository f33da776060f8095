-- Which different kernels and memory operations does a run consist of, how often do they come per step, how long do
-- they take?
-- Grain: signature, that is all that makes two launches the same piece of work; device and stream do not. Tier: 1
-- memory operations (class copy), 2 matmul, 3 the rest. Calls per step count what lies inside marked steps. Names are
-- numbered first, since grouping millions of long texts with other columns costs more than all the rest. Sums are
-- whole numbers, exact for every row order (see top_kernels). Steps are counted from the events anew: of what is
-- asked for twice DuckDB would keep every row.
CREATE VIEW v1.unique_kernels AS
WITH names AS (
    SELECT e.name, row_number() OVER (ORDER BY e.name) AS name_no
    FROM main.kernel_event AS e
    GROUP BY e.name
),
events AS (
    SELECT
        /* by e */
        e.capture_id AS clock_id,
        s.step AS step_number,
        n.name_no,
        e.class,
        e.grid_x, e.grid_y, e.grid_z, e.block_x, e.block_y, e.block_z,
        e.static_shared_bytes, e.dynamic_shared_bytes, e.shared_bytes,
        e.dtype, e.bytes, e.op_id, e.duration_ns
    FROM v1._gpu_event AS e /* join e */
    INNER JOIN names AS n ON n.name = e.name
    LEFT JOIN v1._step_kernel AS s ON s.capture_id = e.capture_id AND s.event_id = e.event_id
    WHERE e.kind IN ('kernel', 'memcpy', 'memset') /* filter e */
),
marked AS (
    SELECT /* by e */ count(DISTINCT (e.capture_id, s.step)) AS steps
    FROM v1._gpu_event AS e /* join e */
    INNER JOIN v1._step_kernel AS s ON s.capture_id = e.capture_id AND s.event_id = e.event_id
    WHERE e.kind IN ('kernel', 'memcpy', 'memset') AND s.step IS NOT NULL /* filter e */
    GROUP BY ALL
),
sums AS (
    SELECT
        /* by */
        e.name_no, e.class,
        e.grid_x, e.grid_y, e.grid_z, e.block_x, e.block_y, e.block_z,
        e.static_shared_bytes, e.dynamic_shared_bytes, e.shared_bytes,
        e.dtype, e.bytes, o.name AS op_name, o.input_dims,
        count(*) AS calls,
        count(e.step_number) AS calls_in_steps,
        sum(e.duration_ns) AS total_ns,
        sum(e.duration_ns::HUGEINT * e.duration_ns) AS squares,
        median(e.duration_ns) AS median_ns
    FROM events AS e
    LEFT JOIN main.op AS o ON o.capture_id = e.clock_id AND o.op_id = e.op_id
    GROUP BY ALL
)
SELECT
    /* by */
    n.name, s.class,
    CASE s.class WHEN 'copy' THEN 1 WHEN 'matmul' THEN 2 ELSE 3 END AS tier,
    s.grid_x, s.grid_y, s.grid_z, s.block_x, s.block_y, s.block_z,
    s.static_shared_bytes, s.dynamic_shared_bytes, s.shared_bytes,
    s.dtype, s.bytes, s.op_name, s.input_dims,
    s.calls,
    s.calls_in_steps / (SELECT nullif(m.steps, 0) FROM marked AS m WHERE true /* using s m */) AS calls_per_step,
    s.total_ns::BIGINT AS total_ns,
    s.total_ns / s.calls AS mean_ns,
    s.median_ns,
    v1._sample_stddev(s.calls, s.total_ns, s.squares) AS stddev_ns
FROM sums AS s
INNER JOIN names AS n ON n.name_no = s.name_no;

COMMENT ON VIEW v1.unique_kernels IS 'Distinct kernels and memory operations of a run, with calls per step and time. Grain: signature (name, class, launch size, shared memory, element type, bytes, operator and its input shapes).';
COMMENT ON COLUMN v1.unique_kernels.name IS 'Name as recorded.';
COMMENT ON COLUMN v1.unique_kernels.class IS 'Class of the kernel; copy for copies and memsets.';
COMMENT ON COLUMN v1.unique_kernels.tier IS '1: memory operation (class copy); 2: matmul; 3: everything else. [-]';
COMMENT ON COLUMN v1.unique_kernels.grid_x IS 'Grid size, x. [blocks]';
COMMENT ON COLUMN v1.unique_kernels.grid_y IS 'Grid size, y. [blocks]';
COMMENT ON COLUMN v1.unique_kernels.grid_z IS 'Grid size, z. [blocks]';
COMMENT ON COLUMN v1.unique_kernels.block_x IS 'Block size, x. [threads]';
COMMENT ON COLUMN v1.unique_kernels.block_y IS 'Block size, y. [threads]';
COMMENT ON COLUMN v1.unique_kernels.block_z IS 'Block size, z. [threads]';
COMMENT ON COLUMN v1.unique_kernels.static_shared_bytes IS 'Static shared memory per block. [bytes]';
COMMENT ON COLUMN v1.unique_kernels.dynamic_shared_bytes IS 'Dynamic shared memory per block. [bytes]';
COMMENT ON COLUMN v1.unique_kernels.shared_bytes IS 'Shared memory per block, static and dynamic together. [bytes]';
COMMENT ON COLUMN v1.unique_kernels.dtype IS 'Element type of the collective as recorded.';
COMMENT ON COLUMN v1.unique_kernels.bytes IS 'Bytes copied or set by one call. [bytes]';
COMMENT ON COLUMN v1.unique_kernels.op_name IS 'Innermost framework operator that launched the kernel; NULL if none or not recorded.';
COMMENT ON COLUMN v1.unique_kernels.input_dims IS 'Input shapes of that operator, as JSON text as recorded; NULL if not recorded.';
COMMENT ON COLUMN v1.unique_kernels.calls IS 'Number of calls. [count]';
COMMENT ON COLUMN v1.unique_kernels.calls_per_step IS 'Calls inside steps, per capture and step (steps with GPU events only); NULL without steps. [count]';
COMMENT ON COLUMN v1.unique_kernels.total_ns IS 'Sum of durations. [ns]';
COMMENT ON COLUMN v1.unique_kernels.mean_ns IS 'Mean duration. [ns]';
COMMENT ON COLUMN v1.unique_kernels.median_ns IS 'Median duration, mean of the middle two. [ns]';
COMMENT ON COLUMN v1.unique_kernels.stddev_ns IS 'Sample standard deviation of durations, 0 for one call. [ns]';
