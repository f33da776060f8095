-- How often and how long did the work of each signature run?
-- Grain: signature (see v1._unique_kernel). Names, and operators with their shapes, are numbered first, because joining
-- and grouping millions of long texts costs more than everything else. The numbers of names need no order: only one place
-- reads them, and the name of a group is that of any of its events. Sums are integers, exact for every row order (see
-- top_kernels). The first call is the one with the lowest capture and event number, packed into one number, because
-- DuckDB compares structs slowly. detected_steps are the passes of all captures in the answer, not only of those that
-- have the signature; they are here because two steps read the passes, which are thus detected only once.
CREATE VIEW v1._signature_sum AS
WITH passes AS (
    SELECT d.capture_id, d.passes
    FROM v1._detected_pass AS d
),
names AS (
    SELECT e.name, row_number() OVER () AS name_no
    FROM main.kernel_event AS e
    GROUP BY e.name
),
events AS (
    SELECT
        /* by e */
        e.capture_id AS clock_id,
        e.event_id,
        e.device_id AS gpu_id,
        coalesce(s.step, d.passes) AS in_step,
        n.name_no,
        e.name,
        e.kind,
        e.class,
        e.grid_x, e.grid_y, e.grid_z, e.block_x, e.block_y, e.block_z,
        e.static_shared_bytes, e.dynamic_shared_bytes, e.shared_bytes,
        e.dtype, e.bytes, e.op_id, e.duration_ns
    FROM v1._gpu_event AS e /* join e */
    INNER JOIN names AS n ON n.name = e.name
    LEFT JOIN v1._step_kernel AS s ON s.capture_id = e.capture_id AND s.event_id = e.event_id
    LEFT JOIN passes AS d ON d.capture_id = e.capture_id
    WHERE e.kind IN ('kernel', 'memcpy', 'memset') /* filter e */
),
sums AS (
    SELECT
        /* by */
        e.name_no, e.kind, e.class,
        e.grid_x, e.grid_y, e.grid_z, e.block_x, e.block_y, e.block_z,
        e.static_shared_bytes, e.dynamic_shared_bytes, e.shared_bytes,
        e.dtype, e.bytes, o.shape_no,
        any_value(e.name) AS name,
        count(*) AS calls,
        count(e.in_step) AS calls_in_steps,
        sum(e.duration_ns) AS total_ns,
        sum(e.duration_ns::HUGEINT * e.duration_ns) AS squares,
        min(e.duration_ns) AS min_ns,
        max(e.duration_ns) AS max_ns,
        quantile_cont(e.duration_ns, [0.05, 0.25, 0.5, 0.75, 0.95]) AS quantiles,
        min(e.gpu_id) AS lowest_gpu,
        max(e.gpu_id) AS highest_gpu,
        min(e.clock_id * 4611686018427387904::HUGEINT + e.event_id) AS first_call
    FROM events AS e
    LEFT JOIN v1._shaped_op AS o ON o.capture_id = e.clock_id AND o.op_id = e.op_id
    GROUP BY ALL
),
repeating AS (
    SELECT DISTINCT /* by e */ e.capture_id AS clock_id
    FROM v1._unclassed_event AS e /* join e */
    WHERE e.kind IN ('kernel', 'memcpy', 'memset') /* filter e */
),
detected AS (
    SELECT /* by g */ sum(d.passes) AS steps
    FROM repeating AS g
    INNER JOIN passes AS d ON d.capture_id = g.clock_id
    GROUP BY ALL
)
SELECT
    s.* EXCLUDE (name_no, shape_no),
    h.name AS op_name,
    h.input_dims,
    (SELECT d.steps FROM detected AS d WHERE true /* using s d */) AS detected_steps
FROM sums AS s
LEFT JOIN v1._op_shape AS h ON h.shape_no = s.shape_no;
