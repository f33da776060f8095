-- Which ranks are the stages of a pipeline, and which of their messages go forward or backward?
-- Grain: message between two stages, with the columns of v1._message_pair. A pipeline is found from the order of its
-- messages: the first stage begins each step by sending, and every other stage by receiving; the first message that a
-- stage sends goes to the next one, because it cannot send a gradient before it has sent an activation. (Steps are
-- evaluated one by one, and what most of them say is taken.) pipeline is the rank of the first stage. Ranks that all
-- begin by sending, as in a ring, are no pipeline. With several chunks of layers per rank (interleaved schedules), the
-- last stage also sends forward to the first one.
CREATE VIEW v1._pipeline_message AS
WITH RECURSIVE pairs AS (
    SELECT p.*
    FROM v1._message_pair AS p
    WHERE p.source_rank <> p.destination_rank
),
sides AS (
    SELECT
        p.set_id, p.step, p.source_rank AS rank, p.destination_rank AS other, true AS is_send,
        p.send_event_id AS event_id, p.send_called_ns AS called_ns, p.send_call_id AS call_id
    FROM pairs AS p
    UNION ALL
    SELECT
        p.set_id, p.step, p.destination_rank AS rank, p.source_rank AS other, false AS is_send,
        p.recv_event_id AS event_id, p.recv_called_ns AS called_ns, p.recv_call_id AS call_id
    FROM pairs AS p
),
begins AS (
    SELECT s.set_id, s.step, s.rank, arg_min(s.event_id, (s.called_ns, s.call_id)) AS event_id
    FROM sides AS s
    GROUP BY s.set_id, s.step, s.rank
),
steps AS (
    SELECT
        s.set_id, s.step, s.rank,
        coalesce(bool_or(s.is_send) FILTER (s.event_id = b.event_id), false) AS is_first,
        arg_min(s.other, (s.called_ns, s.call_id)) FILTER (s.is_send) AS next_rank
    FROM sides AS s
    INNER JOIN begins AS b ON b.set_id = s.set_id AND b.step IS NOT DISTINCT FROM s.step AND b.rank = s.rank
    GROUP BY s.set_id, s.step, s.rank
),
votes AS (
    SELECT s.set_id, s.rank, s.is_first, s.next_rank, count(*) AS steps
    FROM steps AS s
    GROUP BY s.set_id, s.rank, s.is_first, s.next_rank
),
links AS (
    SELECT
        v.set_id, v.rank,
        arg_max(v.is_first, (v.steps, v.is_first, -coalesce(v.next_rank, -1))) AS is_first,
        arg_max(v.next_rank, (v.steps, v.is_first, -v.next_rank)) AS next_rank
    FROM votes AS v
    GROUP BY v.set_id, v.rank
),
chain AS (
    SELECT l.set_id, l.rank AS pipeline, l.rank, 0 AS stage, [l.rank] AS path
    FROM links AS l
    WHERE l.is_first
    UNION ALL
    SELECT c.set_id, c.pipeline, n.rank, c.stage + 1 AS stage, list_append(c.path, n.rank) AS path
    FROM chain AS c
    INNER JOIN links AS l ON l.set_id = c.set_id AND l.rank = c.rank
    INNER JOIN links AS n ON n.set_id = c.set_id AND n.rank = l.next_rank AND NOT n.is_first
    WHERE NOT list_contains(c.path, n.rank)
),
counted AS (
    SELECT
        c.set_id, c.pipeline, c.rank, c.stage,
        count(*) OVER (PARTITION BY c.set_id, c.pipeline) AS stages,
        count(*) OVER (PARTITION BY c.set_id, c.rank) AS pipelines
    FROM chain AS c
),
stages AS (
    SELECT c.set_id, c.pipeline, c.rank, c.stage, c.stages
    FROM counted AS c
    QUALIFY c.stages > 1 AND max(c.pipelines) OVER (PARTITION BY c.set_id, c.pipeline) = 1
)
SELECT
    p.*,
    s.pipeline, s.stages,
    s.stage AS source_stage,
    d.stage AS destination_stage,
    CASE
        WHEN d.stage = s.stage + 1 THEN 'forward'
        WHEN d.stage = s.stage - 1 THEN 'backward'
        WHEN d.stage = 0 AND s.stage = s.stages - 1 THEN 'forward'
        WHEN s.stage = 0 AND d.stage = s.stages - 1 THEN 'backward'
    END AS direction
FROM pairs AS p
INNER JOIN stages AS s ON s.set_id = p.set_id AND s.rank = p.source_rank
INNER JOIN stages AS d ON d.set_id = p.set_id AND d.rank = p.destination_rank AND d.pipeline = s.pipeline;
