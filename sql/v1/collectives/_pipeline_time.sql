-- What does each stage of a pipeline do during a step?
-- Grain: pipeline × step × stage, on the common clock. The window is the same for all stages: from the first computation
-- of the first stage, which waits for nobody, to the last computation or transfer of any stage. Computation is kernels
-- and graph replays that are not collectives. Transfer is the end of each kernel of sends and receives, as long as the
-- longest transfer among its messages (v1._message_pair), and of each other collective, as long as its shortest rank;
-- the rest of these kernels is waiting. The bubble is what neither computation nor transfer covers.
-- Warm-up lasts until the first gradient arrives (on the last stage: the first activation). Cool-down begins when the
-- last activation leaves (on the last stage: the last gradient). Micro-batches are the kernels with which the first
-- stage sends activations; if calls are not batched, tensors of several sizes, equally many of each, are one
-- micro-batch.
-- own_ns: from the first to the last computation of the stage, less waiting for others: the stage that has most of it
-- paces the pipeline, whether its GPU or its CPU is slow.
CREATE VIEW v1._pipeline_time AS
WITH messages AS (
    SELECT m.*
    FROM v1._pipeline_message AS m
),
sides AS (
    SELECT
        m.set_id, m.pipeline, m.stages, m.source, m.labels, m.cycle, m.clock, m.clock_residual_ns, m.step, m.step_index,
        m.direction, m.destination_stage AS other_stage, m.message_bytes, m.transfer_ns,
        m.send_capture_id AS capture_id, m.source_rank AS rank, m.source_stage AS stage, m.send_event_id AS event_id,
        m.send_start_ns AS start_ns, m.send_start_ns + m.send_duration_ns AS end_ns, true AS is_send,
        m.send_is_batched AS is_batched
    FROM messages AS m
    UNION ALL
    SELECT
        m.set_id, m.pipeline, m.stages, m.source, m.labels, m.cycle, m.clock, m.clock_residual_ns, m.step, m.step_index,
        m.direction, m.source_stage AS other_stage, m.message_bytes, m.transfer_ns,
        m.recv_capture_id AS capture_id, m.destination_rank AS rank, m.destination_stage AS stage,
        m.recv_event_id AS event_id,
        m.recv_start_ns AS start_ns, m.recv_start_ns + m.recv_duration_ns AS end_ns, false AS is_send,
        m.recv_is_batched AS is_batched
    FROM messages AS m
),
marked AS (
    SELECT s.set_id, s.pipeline, bool_or(s.step IS NOT NULL) AS has_steps
    FROM sides AS s
    GROUP BY s.set_id, s.pipeline
),
ranks AS (
    SELECT
        s.set_id, s.pipeline, s.capture_id, s.rank,
        any_value(s.stage) AS stage,
        any_value(s.stages) AS stages,
        any_value(s.source) AS source,
        any_value(s.labels) AS labels,
        any_value(s.cycle) AS cycle,
        any_value(s.clock) AS clock,
        max(s.clock_residual_ns) AS residual_ns,
        any_value(m.has_steps) AS has_steps
    FROM sides AS s
    INNER JOIN marked AS m ON m.set_id = s.set_id AND m.pipeline = s.pipeline
    GROUP BY s.set_id, s.pipeline, s.capture_id, s.rank
),
-- Kernels of the first stage that send activations, by size.
forwards AS (
    SELECT
        s.set_id, s.pipeline, s.step, s.message_bytes,
        count(DISTINCT s.event_id) AS kernels,
        bool_or(s.is_batched) AS is_batched
    FROM sides AS s
    WHERE s.is_send AND s.stage = 0 AND s.direction = 'forward'
    GROUP BY s.set_id, s.pipeline, s.step, s.message_bytes
),
returns AS (
    SELECT s.set_id, s.pipeline, s.step, count(DISTINCT s.event_id) AS kernels
    FROM sides AS s
    WHERE NOT s.is_send AND s.stage = 0 AND s.direction = 'forward'
    GROUP BY s.set_id, s.pipeline, s.step
),
totals AS (
    SELECT
        s.set_id, s.pipeline, s.step,
        max(s.step_index) AS step_index,
        count(DISTINCT s.event_id) FILTER (s.is_send AND s.stage = 0 AND s.direction = 'forward') AS kernels
    FROM sides AS s
    GROUP BY s.set_id, s.pipeline, s.step
),
counts AS (
    SELECT
        t.set_id, t.pipeline, t.step, t.step_index,
        CASE
            WHEN f.sizes > 1 AND NOT f.is_batched AND f.least = f.most AND f.least > 1 THEN f.least
            ELSE t.kernels
        END AS forwards,
        forwards - coalesce(r.kernels, 0) AS micro_batches
    FROM totals AS t
    LEFT JOIN (
        SELECT
            w.set_id, w.pipeline, w.step, count(*) AS sizes, min(w.kernels) AS least, max(w.kernels) AS most,
            bool_or(w.is_batched) AS is_batched
        FROM forwards AS w
        GROUP BY w.set_id, w.pipeline, w.step
    ) AS f ON f.set_id = t.set_id AND f.pipeline = t.pipeline AND f.step IS NOT DISTINCT FROM t.step
    LEFT JOIN returns AS r
        ON r.set_id = t.set_id AND r.pipeline = t.pipeline AND r.step IS NOT DISTINCT FROM t.step
),
events AS (
    SELECT
        r.set_id, r.pipeline, r.capture_id, r.stage, t.step, e.event_id,
        e.class = 'collective' AS is_collective,
        coalesce(
            v1._common_time(e.start_ns, k.clock, k.zero_ns, k.offset_ns, k.at_ns, k.stretch), e.start_ns
        ) AS start_ns,
        e.duration_ns
    FROM v1._gpu_event AS e
    INNER JOIN ranks AS r ON r.capture_id = e.capture_id
    INNER JOIN v1._common_clock AS k ON k.capture_id = e.capture_id
    LEFT JOIN v1._step_kernel AS t ON t.capture_id = e.capture_id AND t.event_id = e.event_id
    WHERE e.kind IN ('kernel', 'graph') AND (t.step IS NOT NULL OR NOT r.has_steps)
),
moves AS (
    SELECT s.capture_id, s.event_id, max(s.transfer_ns) AS transfer_ns
    FROM sides AS s
    GROUP BY s.capture_id, s.event_id
    UNION ALL
    SELECT p.capture_id, p.event_id, p.latency_ns AS transfer_ns
    FROM v1._collective_member AS p
    WHERE p.collective <> 'sendrecv' AND p.capture_id IN (SELECT r.capture_id FROM ranks AS r)
),
parts AS (
    SELECT
        e.set_id, e.pipeline, e.capture_id, e.stage, e.step, e.start_ns, e.start_ns + e.duration_ns AS end_ns,
        CASE WHEN e.is_collective THEN 3 ELSE 1 END AS layer
    FROM events AS e
    UNION ALL
    SELECT
        e.set_id, e.pipeline, e.capture_id, e.stage, e.step,
        e.start_ns + e.duration_ns - least(m.transfer_ns, e.duration_ns) AS start_ns,
        e.start_ns + e.duration_ns AS end_ns,
        2 AS layer
    FROM events AS e
    INNER JOIN moves AS m ON m.capture_id = e.capture_id AND m.event_id = e.event_id
    WHERE e.is_collective
),
windows AS (
    SELECT
        p.set_id, p.pipeline, p.step,
        min(p.start_ns) FILTER (p.layer = 1 AND p.stage = 0) AS start_ns,
        max(p.end_ns) FILTER (p.layer <= 2) AS end_ns
    FROM parts AS p
    GROUP BY p.set_id, p.pipeline, p.step
),
turns AS (
    SELECT
        s.capture_id, s.step,
        coalesce(
            min(s.end_ns) FILTER (NOT s.is_send AND s.direction = 'backward'),
            min(s.end_ns) FILTER (NOT s.is_send AND s.direction = 'forward')
        ) AS warm_ns,
        coalesce(
            max(s.start_ns) FILTER (s.is_send AND s.direction = 'forward'),
            max(s.start_ns) FILTER (s.is_send AND s.direction = 'backward')
        ) AS cool_ns
    FROM sides AS s
    GROUP BY s.capture_id, s.step
),
spans AS (
    SELECT p.capture_id, p.step, min(p.start_ns) AS first_ns, max(p.end_ns) AS last_ns
    FROM parts AS p
    WHERE p.layer = 1
    GROUP BY p.capture_id, p.step
),
phases AS (
    SELECT
        r.set_id, r.pipeline, r.capture_id, w.step,
        w.start_ns AS begin_ns,
        w.end_ns,
        least(greatest(coalesce(t.warm_ns, w.start_ns), w.start_ns), w.end_ns) AS warm_ns,
        least(greatest(coalesce(t.cool_ns, w.end_ns), warm_ns), w.end_ns) AS cool_ns,
        greatest(x.first_ns, w.start_ns) AS first_ns,
        least(x.last_ns, w.end_ns) AS last_ns
    FROM ranks AS r
    INNER JOIN windows AS w ON w.set_id = r.set_id AND w.pipeline = r.pipeline
    LEFT JOIN turns AS t ON t.capture_id = r.capture_id AND t.step IS NOT DISTINCT FROM w.step
    LEFT JOIN spans AS x ON x.capture_id = r.capture_id AND x.step IS NOT DISTINCT FROM w.step
    WHERE r.clock <> 'incomparable'
),
clipped AS (
    SELECT
        p.capture_id, p.step, p.layer,
        h.begin_ns, h.warm_ns, h.cool_ns, h.first_ns, h.last_ns,
        greatest(p.start_ns, h.begin_ns) AS start_ns,
        least(p.end_ns, h.end_ns) AS end_ns
    FROM parts AS p
    INNER JOIN phases AS h ON h.capture_id = p.capture_id AND h.step IS NOT DISTINCT FROM p.step
    WHERE p.start_ns < h.end_ns AND p.end_ns > h.begin_ns
),
-- What a part adds to the union of layer 1, of 1 and 2, and of all, is what lies after the latest end so far.
reaches AS (
    SELECT
        c.*,
        greatest(start_ns, coalesce(max(end_ns) FILTER (layer = 1) OVER earlier, start_ns)) AS start_1_ns,
        greatest(start_ns, coalesce(max(end_ns) FILTER (layer <= 2) OVER earlier, start_ns)) AS start_2_ns,
        greatest(start_ns, coalesce(max(end_ns) OVER earlier, start_ns)) AS start_3_ns
    FROM clipped AS c
    WINDOW earlier AS (
        PARTITION BY capture_id, step ORDER BY start_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    )
),
unions AS (
    SELECT
        capture_id, step,
        sum(greatest(end_ns - start_1_ns, 0)) FILTER (layer = 1) AS compute_ns,
        sum(greatest(end_ns - start_2_ns, 0)) FILTER (layer <= 2) AS busy_ns,
        sum(greatest(end_ns - start_3_ns, 0)) AS all_ns,
        sum(greatest(least(end_ns, warm_ns) - start_2_ns, 0)) FILTER (layer <= 2) AS warm_busy_ns,
        sum(greatest(end_ns - greatest(start_2_ns, cool_ns), 0)) FILTER (layer <= 2) AS cool_busy_ns,
        sum(greatest(least(end_ns, last_ns) - greatest(start_2_ns, first_ns), 0)) FILTER (layer <= 2) AS span_busy_ns,
        sum(greatest(least(end_ns, last_ns) - greatest(start_3_ns, first_ns), 0)) AS span_all_ns
    FROM reaches
    GROUP BY capture_id, step
),
timed AS (
    SELECT
        r.source, r.labels, r.cycle, r.set_id, r.pipeline, n.step, n.step_index, r.capture_id, r.rank, r.stage, r.stages,
        n.forwards, n.micro_batches,
        h.end_ns - h.begin_ns AS window_ns,
        CASE WHEN window_ns IS NOT NULL THEN coalesce(u.compute_ns, 0) END::BIGINT AS compute_ns,
        CASE WHEN window_ns IS NOT NULL THEN coalesce(u.busy_ns - u.compute_ns, 0) END::BIGINT AS transfer_ns,
        (h.end_ns - h.begin_ns - coalesce(u.busy_ns, 0))::BIGINT AS bubble_ns,
        (h.warm_ns - h.begin_ns - coalesce(u.warm_busy_ns, 0))::BIGINT AS warmup_bubble_ns,
        (h.end_ns - h.cool_ns - coalesce(u.cool_busy_ns, 0))::BIGINT AS cooldown_bubble_ns,
        CASE WHEN window_ns IS NOT NULL THEN coalesce(u.all_ns - u.busy_ns, 0) END::BIGINT AS wait_ns,
        (h.last_ns - h.first_ns - u.span_all_ns + u.span_busy_ns)::BIGINT AS own_ns,
        max(r.residual_ns) OVER (PARTITION BY r.set_id, r.pipeline) AS residual_ns,
        h.capture_id IS NOT NULL AS is_comparable
    FROM ranks AS r
    INNER JOIN counts AS n
        ON n.set_id = r.set_id AND n.pipeline = r.pipeline AND (n.step IS NOT NULL OR NOT r.has_steps)
    LEFT JOIN phases AS h ON h.capture_id = r.capture_id AND h.step IS NOT DISTINCT FROM n.step
    LEFT JOIN unions AS u ON u.capture_id = r.capture_id AND u.step IS NOT DISTINCT FROM n.step
),
owned AS (
    SELECT t.set_id, t.pipeline, t.capture_id, sum(t.own_ns) AS own_ns
    FROM timed AS t
    GROUP BY t.set_id, t.pipeline, t.capture_id
),
ordered AS (
    SELECT
        o.capture_id,
        o.own_ns > 1.05 * max(o.own_ns) OVER (
            PARTITION BY o.set_id, o.pipeline ORDER BY o.own_ns DESC, o.capture_id
            ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING
        ) AND row_number() OVER (PARTITION BY o.set_id, o.pipeline ORDER BY o.own_ns DESC, o.capture_id) = 1
            AS is_bottleneck
    FROM owned AS o
)
SELECT
    t.*,
    CASE WHEN t.is_comparable THEN coalesce(o.is_bottleneck, false) END AS is_bottleneck,
    t.is_comparable AND coalesce(
        t.residual_ns <= min(t.bubble_ns) OVER (PARTITION BY t.set_id, t.pipeline, t.step), true
    ) AS is_measurable
FROM timed AS t
INNER JOIN ordered AS o ON o.capture_id = t.capture_id;
