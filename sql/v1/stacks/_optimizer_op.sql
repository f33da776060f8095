-- Which operators start inside PyTorch's optimizer (v1._optimizer_range)? Grain: operator instance. Only operators of
-- threads that have such ranges are sorted.
CREATE VIEW v1._optimizer_op AS
WITH threads AS (
    SELECT DISTINCT
        r.capture_id, v1._asof_key(r.process_id) AS process_key, v1._asof_key(r.thread_id) AS thread_key
    FROM v1._optimizer_range AS r
),
ops AS (
    SELECT o.capture_id, o.op_id, t.process_key, t.thread_key, o.start_ns
    FROM main.op AS o
    INNER JOIN threads AS t
        ON t.capture_id = o.capture_id
        AND t.process_key = v1._asof_key(o.process_id)
        AND t.thread_key = v1._asof_key(o.thread_id)
)
SELECT p.capture_id, p.op_id
FROM ops AS p
ASOF INNER JOIN v1._optimizer_range AS z
    ON z.capture_id = p.capture_id AND v1._asof_key(z.process_id) = p.process_key
    AND v1._asof_key(z.thread_id) = p.thread_key AND z.start_ns <= p.start_ns
WHERE z.end_ns >= p.start_ns;
