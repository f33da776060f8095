-- Which send of one rank is which receive of another?
-- Grain: matched pair of a send and a receive, on the common clock (NULL if clocks cannot be compared). The i-th send
-- from A to B in a group is the i-th receive on B from A, in the order of calls. Calls are counted within marked steps
-- if both ranks have equally many in every step that both recorded; else over the capture, from the first or from the
-- last call of both, whichever makes more pairs overlap in time. A group that only one of the two ranks records under
-- its name is counted together with the pair's other such groups. Ranks that occur twice in a set are left out.
-- transfer_ns is the shorter of the two kernels, since each kernel starts when its own rank is ready and ends when the
-- data has moved.
CREATE VIEW v1._message_pair AS
WITH recorded AS (
    SELECT c.*
    FROM v1._message_call AS c
),
sets AS (
    SELECT s.*
    FROM v1._capture_set AS s
),
ranks AS (
    SELECT s.set_id, s.rank
    FROM sets AS s
    WHERE s.rank IS NOT NULL
    GROUP BY s.set_id, s.rank
    HAVING count(*) FILTER (s.capture_id IN (SELECT c.capture_id FROM recorded AS c)) = 1
),
calls AS (
    SELECT
        s.set_id, s.source, s.labels, s.cycle,
        CASE WHEN c.is_send THEN s.rank ELSE c.peer_rank END AS source_rank,
        CASE WHEN c.is_send THEN c.peer_rank ELSE s.rank END AS destination_rank,
        c.capture_id, c.call_id, c.event_id, c.is_batched, c.is_send, c.elements, c.bytes, c.dtype,
        c.group_name, c.group_size, c.group_ranks, c.called_ns, c.name, c.device_id, c.stream_id, c.duration_ns,
        t.step, t.step_index, t.marked_step,
        k.clock,
        v1._common_time(c.start_ns, k.clock, k.zero_ns, k.offset_ns, k.at_ns, k.stretch) AS start_ns,
        a.residual_median_ns
    FROM recorded AS c
    INNER JOIN sets AS s ON s.capture_id = c.capture_id
    INNER JOIN ranks AS r ON r.set_id = s.set_id AND r.rank = s.rank
    INNER JOIN v1._common_clock AS k ON k.capture_id = c.capture_id
    LEFT JOIN v1._step_kernel AS t ON t.capture_id = c.capture_id AND t.event_id = c.event_id
    LEFT JOIN main.clock_alignment AS a ON a.capture_id = c.capture_id
    WHERE c.peer_rank IS NOT NULL
),
named AS (
    SELECT
        c.*,
        CASE
            WHEN count(DISTINCT c.is_send) OVER (
                PARTITION BY c.set_id, c.source_rank, c.destination_rank, c.group_name
            ) = 2 THEN c.group_name
        END AS common_name
    FROM calls AS c
),
placed AS (
    SELECT
        n.*,
        row_number() OVER (
            PARTITION BY n.set_id, n.source_rank, n.destination_rank, n.common_name, n.is_send
            ORDER BY n.called_ns, n.call_id
        ) AS place,
        row_number() OVER (
            PARTITION BY n.set_id, n.source_rank, n.destination_rank, n.common_name, n.is_send, n.marked_step
            ORDER BY n.called_ns, n.call_id
        ) AS step_place
    FROM named AS n
),
step_lanes AS (
    SELECT
        set_id, source_rank, destination_rank, common_name, marked_step,
        count(*) FILTER (is_send) AS sends,
        count(*) FILTER (NOT is_send) AS receives
    FROM placed
    GROUP BY set_id, source_rank, destination_rank, common_name, marked_step
),
-- Order within steps is unusable where calls are outside of steps and their numbers differ.
lanes AS (
    SELECT
        set_id, source_rank, destination_rank, common_name,
        sum(sends)::BIGINT AS sends,
        sum(receives)::BIGINT AS receives,
        bool_or(marked_step IS NOT NULL AND sends > 0 AND receives > 0)
            AND bool_and(sends = receives OR marked_step IS NOT NULL AND (sends = 0 OR receives = 0)) AS is_by_step
    FROM step_lanes
    GROUP BY set_id, source_rank, destination_rank, common_name
    HAVING sum(sends) > 0 AND sum(receives) > 0
),
uneven AS (
    SELECT
        l.set_id, l.source_rank, l.destination_rank, l.common_name,
        avg((s.start_ns < f.start_ns + f.duration_ns AND f.start_ns < s.start_ns + s.duration_ns)::INTEGER) AS front,
        avg((s.start_ns < b.start_ns + b.duration_ns AND b.start_ns < s.start_ns + s.duration_ns)::INTEGER) AS back
    FROM lanes AS l
    INNER JOIN placed AS s
        ON s.set_id = l.set_id AND s.source_rank = l.source_rank AND s.destination_rank = l.destination_rank
        AND s.common_name IS NOT DISTINCT FROM l.common_name AND s.is_send
    LEFT JOIN placed AS f
        ON f.set_id = l.set_id AND f.source_rank = l.source_rank AND f.destination_rank = l.destination_rank
        AND f.common_name IS NOT DISTINCT FROM l.common_name AND NOT f.is_send AND f.place = s.place
    LEFT JOIN placed AS b
        ON b.set_id = l.set_id AND b.source_rank = l.source_rank AND b.destination_rank = l.destination_rank
        AND b.common_name IS NOT DISTINCT FROM l.common_name AND NOT b.is_send
        AND b.place = s.place + l.receives - l.sends
    WHERE NOT l.is_by_step AND l.sends <> l.receives
    GROUP BY l.set_id, l.source_rank, l.destination_rank, l.common_name
),
ruled AS (
    SELECT
        p.*,
        CASE
            WHEN l.is_by_step THEN 'order in step'
            WHEN u.back > coalesce(u.front, 0) THEN 'order from the end'
            ELSE 'order'
        END AS match_rule,
        CASE WHEN l.is_by_step THEN p.marked_step END AS rule_step,
        CASE
            WHEN l.is_by_step THEN p.step_place
            WHEN u.back > coalesce(u.front, 0) THEN p.place - CASE WHEN p.is_send THEN l.sends ELSE l.receives END
            ELSE p.place
        END AS rule_place
    FROM placed AS p
    INNER JOIN lanes AS l
        ON l.set_id = p.set_id AND l.source_rank = p.source_rank AND l.destination_rank = p.destination_rank
        AND l.common_name IS NOT DISTINCT FROM p.common_name
    LEFT JOIN uneven AS u
        ON u.set_id = p.set_id AND u.source_rank = p.source_rank AND u.destination_rank = p.destination_rank
        AND u.common_name IS NOT DISTINCT FROM p.common_name
)
SELECT
    s.set_id, s.source, s.labels, s.cycle,
    coalesce(s.step, r.step) AS step,
    coalesce(s.step_index, r.step_index) AS step_index,
    s.source_rank, s.destination_rank,
    coalesce(s.group_name, r.group_name) AS group_name,
    coalesce(s.group_ranks, r.group_ranks) AS group_ranks,
    row_number() OVER (
        PARTITION BY s.set_id, s.source_rank, s.destination_rank, s.common_name ORDER BY s.place
    ) AS ordinal,
    coalesce(s.bytes, r.bytes) AS message_bytes,
    coalesce(s.elements <> r.elements, false) AS is_unequal,
    coalesce(s.dtype, r.dtype) AS dtype,
    least(s.duration_ns, r.duration_ns) AS transfer_ns,
    s.capture_id AS send_capture_id, s.event_id AS send_event_id, s.call_id AS send_call_id,
    s.device_id AS send_device_id, s.stream_id AS send_stream_id, s.called_ns AS send_called_ns,
    s.start_ns AS send_start_ns, s.duration_ns AS send_duration_ns, s.is_batched AS send_is_batched,
    r.capture_id AS recv_capture_id, r.event_id AS recv_event_id, r.call_id AS recv_call_id,
    r.device_id AS recv_device_id, r.stream_id AS recv_stream_id, r.called_ns AS recv_called_ns,
    r.start_ns AS recv_start_ns, r.duration_ns AS recv_duration_ns, r.is_batched AS recv_is_batched,
    s.match_rule,
    s.clock,
    CASE WHEN s.clock = 'aligned' AND s.capture_id <> r.capture_id
        THEN greatest(s.residual_median_ns, r.residual_median_ns)
    END AS clock_residual_ns
FROM ruled AS s
INNER JOIN ruled AS r
    ON r.set_id = s.set_id AND r.source_rank = s.source_rank AND r.destination_rank = s.destination_rank
    AND r.common_name IS NOT DISTINCT FROM s.common_name
    AND r.rule_step IS NOT DISTINCT FROM s.rule_step AND r.rule_place = s.rule_place AND NOT r.is_send
WHERE s.is_send;
