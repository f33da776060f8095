-- Adds ends of messages to clock_end, for ranks that share no collective (such as the stages of a pipeline) and whose
-- clocks are clearly apart: a receive ends more than 0.1 ms before its send starts, or the zero of a clock is not known.
-- In:  v1._message_pair, temp table clock_end (clock_ends.sql).
-- Out: further rows of clock_end; their collective_id is a negative number, which is no collective.
-- Method: a pair of kernels counts only if both carry exactly the same messages; a kernel with further messages may end
-- later. Clocks that are not clearly apart stay as recorded: the sender of a small message may end long before the
-- receiver, so messages are worse evidence than the clock of a host.
INSERT INTO clock_end
WITH pair AS (
    SELECT
        p.set_id, p.source_rank, p.destination_rank, p.send_capture_id, p.recv_capture_id, p.send_event_id,
        p.recv_event_id,
        p.send_capture_id < p.recv_capture_id AS is_upward,
        least(p.send_capture_id, p.recv_capture_id) AS low_id,
        greatest(p.send_capture_id, p.recv_capture_id) AS high_id,
        count(*) OVER (
            PARTITION BY low_id, CASE WHEN is_upward THEN p.send_event_id ELSE p.recv_event_id END,
                high_id, CASE WHEN is_upward THEN p.recv_event_id ELSE p.send_event_id END
        ) AS together
    FROM v1._message_pair AS p
    WHERE p.send_capture_id <> p.recv_capture_id
),

kernel AS (
    SELECT capture_id, event_id, count(*) AS messages
    FROM (
        SELECT send_capture_id AS capture_id, send_event_id AS event_id FROM pair
        UNION ALL
        SELECT recv_capture_id AS capture_id, recv_event_id AS event_id FROM pair
    )
    GROUP BY capture_id, event_id
),

timed AS (
    SELECT
        p.*,
        s.start_ns + coalesce(c.clock_zero_unix_ns, 0) AS send_start_ns,
        s.start_ns + s.duration_ns + coalesce(c.clock_zero_unix_ns, 0) AS send_end_ns,
        r.start_ns + r.duration_ns + coalesce(d.clock_zero_unix_ns, 0) AS recv_end_ns,
        c.clock_zero_unix_ns IS NULL OR d.clock_zero_unix_ns IS NULL AS is_unknown,
        k.messages = p.together AND l.messages = p.together AS is_alike
    FROM pair AS p
    INNER JOIN kernel AS k ON k.capture_id = p.send_capture_id AND k.event_id = p.send_event_id
    INNER JOIN kernel AS l ON l.capture_id = p.recv_capture_id AND l.event_id = p.recv_event_id
    INNER JOIN main.kernel_event AS s ON s.capture_id = p.send_capture_id AND s.event_id = p.send_event_id
    INNER JOIN main.kernel_event AS r ON r.capture_id = p.recv_capture_id AND r.event_id = p.recv_event_id
    INNER JOIN main.capture AS c ON c.capture_id = p.send_capture_id
    INNER JOIN main.capture AS d ON d.capture_id = p.recv_capture_id
),

shared AS (
    SELECT DISTINCT a.capture_id AS low_id, b.capture_id AS high_id
    FROM clock_end AS a
    INNER JOIN clock_end AS b ON b.collective_id = a.collective_id AND b.capture_id > a.capture_id
),

apart AS (
    SELECT t.set_id
    FROM timed AS t
    GROUP BY t.set_id
    HAVING bool_or(t.is_unknown OR t.recv_end_ns + 100000 < t.send_start_ns)
),

chosen AS (
    SELECT
        t.set_id, t.source_rank, t.destination_rank, t.send_capture_id, t.recv_capture_id, t.send_end_ns, t.recv_end_ns,
        -row_number() OVER (ORDER BY t.send_capture_id, t.send_event_id, t.recv_capture_id, t.recv_event_id)
            AS collective_id
    FROM timed AS t
    INNER JOIN apart AS a ON a.set_id = t.set_id
    ANTI JOIN shared AS h ON h.low_id = t.low_id AND h.high_id = t.high_id
    WHERE t.is_alike
)

SELECT collective_id, set_id, send_capture_id AS capture_id, source_rank AS member, send_end_ns AS end_ns
FROM chosen
UNION ALL
SELECT collective_id, set_id, recv_capture_id AS capture_id, destination_rank AS member, recv_end_ns AS end_ns
FROM chosen;
