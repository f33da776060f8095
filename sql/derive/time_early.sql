-- Whether a GPU event of a capture starts before its launch call by more than the limit: a cheap check for millions of
-- events.
-- In:  {capture}: the capture. Out: one row (is_early).
-- Method: calls are numbered roughly by start, so 64 consecutive ones are close in time. Only if the first event of
-- such a group starts that much before its last call is every event compared with its own call.
WITH limits AS (
    SELECT max(b.limit_ns)::HUGEINT AS early_ns
    FROM main.time_bound AS b
    WHERE b.name = 'before_launch'
),
begun AS (
    SELECT e.launch_id >> 6 AS portion, min(e.start_ns) AS first_ns
    FROM main.kernel_event AS e
    WHERE e.capture_id = {capture} AND e.launch_id IS NOT NULL
    GROUP BY portion
),
called AS (
    SELECT l.launch_id >> 6 AS portion, max(l.start_ns) AS last_ns
    FROM main.launch AS l
    WHERE l.capture_id = {capture}
    GROUP BY portion
),
doubtful AS (
    SELECT b.portion
    FROM begun AS b
    INNER JOIN called AS c ON c.portion = b.portion
    CROSS JOIN limits AS t
    WHERE c.last_ns - b.first_ns::HUGEINT > t.early_ns
)
SELECT count(*) > 0 AS is_early
FROM main.kernel_event AS e
INNER JOIN main.launch AS l ON l.launch_id = e.launch_id
INNER JOIN doubtful AS d ON d.portion = e.launch_id >> 6
CROSS JOIN limits AS t
WHERE e.capture_id = {capture} AND l.capture_id = {capture} AND l.start_ns - e.start_ns::HUGEINT > t.early_ns;
