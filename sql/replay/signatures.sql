-- Groups the calls of the chosen passes by what makes them the same work: the unique operators.
-- In:  temp tables replay_activity, replay_bound; variable replay_capture.
-- Out: temp tables replay_call(pass, call_id, signature_id, recorded_ns, start_ns, kernels),
--      replay_signature (columns of main.replay up to recorded_mad_ns, and hint), replay_measure (of main.replay_pass).
--      Values of scalar inputs belong to the signature; the direction of a copy does too, since shapes do not tell it.
CREATE OR REPLACE TEMP TABLE replay_piece AS
SELECT
    a.pass,
    coalesce(a.op_id::VARCHAR, 'event ' || a.activity_id) AS call_id,
    a.op_id,
    min(a.start_ns) AS start_ns,
    sum(a.end_ns - a.start_ns) AS recorded_ns,
    arg_max(a.class, a.end_ns - a.start_ns) AS class,
    arg_max(v1._kernel_tier(a.kind, a.name, a.class), a.end_ns - a.start_ns) AS tier,
    nullif(string_agg(DISTINCT a.copy_kind, ' ' ORDER BY a.copy_kind), '') AS copy_kind,
    bool_or(a.class = 'collective') AS is_collective,
    bool_or(a.is_graph) AS is_graph,
    min(a.kind) AS kind,
    min(a.name) AS first_name,
    sum(a.bytes) AS bytes,
    CASE WHEN min(a.kind) <> 'op' THEN
        to_json(list([a.name, a.grid::VARCHAR, a.block::VARCHAR] ORDER BY a.name, a.grid, a.block))::VARCHAR
    END AS kernels
FROM temp.replay_activity AS a
GROUP BY a.pass, call_id, a.op_id;

CREATE OR REPLACE TEMP TABLE replay_call AS
SELECT
    p.*,
    coalesce(o.name, p.first_name) AS name,
    o.input_dims, o.input_types, o.input_strides, o.concrete_inputs,
    CASE
        WHEN p.is_collective THEN 'collective'
        WHEN o.op_id IS NULL AND p.is_graph THEN 'graph_only'
        WHEN o.op_id IS NULL AND p.kind IN ('memcpy', 'memset') THEN p.kind
        WHEN o.op_id IS NULL THEN 'no_operator'
        WHEN o.input_dims IS NULL OR o.input_types IS NULL THEN 'no_shapes'
        ELSE 'operator'
    END AS hint
FROM temp.replay_piece AS p
LEFT JOIN main.op AS o ON o.capture_id = getvariable('replay_capture') AND o.op_id = p.op_id;

CREATE OR REPLACE TEMP TABLE replay_signature AS
WITH sums AS (
    SELECT
        c.hint, c.name, c.input_dims, c.input_types, c.input_strides, c.concrete_inputs, c.copy_kind,
        CASE WHEN c.hint IN ('memcpy', 'memset') THEN c.bytes END AS bytes,
        CASE WHEN c.hint IN ('no_operator', 'graph_only') THEN c.kernels END AS own_kernels,
        mode(c.class ORDER BY c.class) AS class,
        mode(c.tier ORDER BY c.tier)::INTEGER AS tier,
        mode(c.kernels ORDER BY c.kernels) AS kernels,
        count(*) AS calls,
        sum(c.recorded_ns)::BIGINT AS recorded_total_ns,
        median(c.recorded_ns)::DOUBLE AS recorded_median_ns,
        mad(c.recorded_ns)::DOUBLE AS recorded_mad_ns
    FROM temp.replay_call AS c
    GROUP BY ALL
)
SELECT
    row_number() OVER (
        ORDER BY s.recorded_total_ns DESC, s.name, s.input_dims, s.input_types, s.input_strides, s.concrete_inputs,
            s.copy_kind, s.bytes, s.own_kernels, s.hint
    )::INTEGER AS signature_id,
    s.*,
    s.calls / (SELECT count(*) FROM temp.replay_bound) AS calls_per_pass,
    100.0 * s.recorded_total_ns / nullif(sum(s.recorded_total_ns) OVER (), 0) AS share_percent
FROM sums AS s;

CREATE OR REPLACE TEMP TABLE replay_order AS
SELECT c.pass, c.start_ns, c.recorded_ns, s.signature_id
FROM temp.replay_call AS c
INNER JOIN temp.replay_signature AS s
    ON s.hint = c.hint AND s.name = c.name
    AND s.input_dims IS NOT DISTINCT FROM c.input_dims AND s.input_types IS NOT DISTINCT FROM c.input_types
    AND s.input_strides IS NOT DISTINCT FROM c.input_strides
    AND s.concrete_inputs IS NOT DISTINCT FROM c.concrete_inputs
    AND s.copy_kind IS NOT DISTINCT FROM c.copy_kind
    AND (c.hint NOT IN ('memcpy', 'memset') OR s.bytes IS NOT DISTINCT FROM c.bytes)
    AND (c.hint NOT IN ('no_operator', 'graph_only') OR s.own_kernels IS NOT DISTINCT FROM c.kernels);

CREATE OR REPLACE TEMP TABLE replay_measure AS
WITH reaches AS (
    SELECT
        a.pass, a.kind, a.start_ns, a.end_ns,
        coalesce(max(a.end_ns) OVER earlier, a.start_ns) AS reach_ns,
        min(a.launched_ns) OVER later AS launched_ns
    FROM temp.replay_activity AS a
    WINDOW
        earlier AS (
            PARTITION BY a.pass ORDER BY a.start_ns, a.activity_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ),
        later AS (
            PARTITION BY a.pass ORDER BY a.start_ns, a.activity_id ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING
        )
),
sums AS (
    SELECT
        r.pass,
        count(*) AS events,
        sum(r.end_ns - r.start_ns)::BIGINT AS kernel_sum_ns,
        sum(greatest(r.end_ns, r.reach_ns) - greatest(r.start_ns, r.reach_ns))::BIGINT AS union_ns,
        max(r.end_ns) - min(r.start_ns) AS span_ns,
        min(r.start_ns) AS first_ns,
        max(r.end_ns) AS last_ns,
        CASE WHEN count(r.launched_ns) > 0 THEN
            sum(greatest(least(r.launched_ns, r.start_ns) - r.reach_ns, 0))
        END::BIGINT AS launch_gap_ns
    FROM reaches AS r
    GROUP BY r.pass
)
SELECT
    b.pass, b.name, b.step, s.events, s.kernel_sum_ns, s.union_ns, s.span_ns,
    s.span_ns - s.union_ns AS idle_ns,
    s.launch_gap_ns,
    coalesce(greatest(b.end_ns, s.last_ns) - b.start_ns, s.span_ns) AS wall_ns
FROM temp.replay_bound AS b
INNER JOIN sums AS s ON s.pass = b.pass;
