-- Which operator allocated each block? Grain: allocation inside an operator. The operator is the innermost one running on
-- the allocating thread: the last one to start before it, or the innermost one around that one that had not ended.
CREATE VIEW v1._allocating_op AS
WITH RECURSIVE latest AS (
    SELECT m.capture_id, m.memory_event_id, m.start_ns AS at_ns, o.op_id, o.parent_op_id, o.start_ns + o.duration_ns AS end_ns
    FROM v1._device_memory AS m
    ASOF INNER JOIN (
        SELECT p.capture_id, p.process_id, p.thread_id, p.start_ns, max(p.op_id) AS op_id
        FROM (
            SELECT
                q.capture_id, q.process_id, q.thread_id, q.start_ns, q.op_id,
                rank() OVER (
                    PARTITION BY q.capture_id, q.process_id, q.thread_id, q.start_ns ORDER BY q.duration_ns
                ) AS place
            FROM main.op AS q
        ) AS p
        WHERE p.place = 1
        GROUP BY p.capture_id, p.process_id, p.thread_id, p.start_ns
    ) AS n
        ON n.capture_id = m.capture_id AND v1._asof_key(n.process_id) = v1._asof_key(m.process_id)
        AND v1._asof_key(n.thread_id) = v1._asof_key(m.thread_id) AND n.start_ns <= m.start_ns
    INNER JOIN main.op AS o ON o.capture_id = n.capture_id AND o.op_id = n.op_id
    WHERE m.bytes > 0
),
climb AS (
    SELECT t.capture_id, t.memory_event_id, t.at_ns, t.op_id, t.parent_op_id, t.end_ns
    FROM latest AS t
    UNION
    SELECT c.capture_id, c.memory_event_id, c.at_ns, o.op_id, o.parent_op_id, o.start_ns + o.duration_ns AS end_ns
    FROM climb AS c
    INNER JOIN main.op AS o ON o.capture_id = c.capture_id AND o.op_id = c.parent_op_id
    WHERE c.end_ns < c.at_ns
)
SELECT c.capture_id, c.memory_event_id, c.op_id
FROM climb AS c
WHERE c.end_ns >= c.at_ns;
