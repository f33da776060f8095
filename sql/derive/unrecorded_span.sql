-- Where replays of graph launches without kernels may have run, between recorded GPU events.
-- In:  {capture}: the capture; temp.graph_call of graph_launches.sql. Out: rows of main.unrecorded_span.
-- A replay runs after its launch call and, on its stream, before what is launched later. So it may have run between its
-- call and the start of the first event that was launched later on a device on which its thread launches work, and what
-- is recorded there is no part of it: a part of one gap. Devices whose clock is apart from that of calls are left out.
INSERT INTO main.unrecorded_span BY NAME
WITH missing AS (
    SELECT g.thread_id, g.start_ns
    FROM temp.graph_call AS g
    WHERE g.events = 0 OR g.is_partial
),
launched AS (
    SELECT e.device_id, e.start_ns, e.start_ns + e.duration_ns AS end_ns, l.start_ns AS call_ns, l.thread_id
    FROM main.kernel_event AS e
    LEFT JOIN main.launch AS l ON l.capture_id = e.capture_id AND l.launch_id = e.launch_id AND l.time_fault IS NULL
    WHERE e.capture_id = {capture} AND e.time_fault IS NULL
        AND NOT EXISTS (
            SELECT 1 FROM main.clock_fault AS f
            WHERE f.capture_id = {capture} AND f.device_id IS NOT DISTINCT FROM e.device_id
        )
),
used AS (
    SELECT DISTINCT e.device_id, e.thread_id
    FROM launched AS e
    WHERE e.call_ns IS NOT NULL
),
later AS (
    SELECT
        e.device_id, e.call_ns,
        min(e.start_ns) OVER (
            PARTITION BY e.device_id ORDER BY e.call_ns RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING
        ) AS next_ns
    FROM launched AS e
    WHERE e.call_ns IS NOT NULL
),
placed AS (
    SELECT u.device_id, m.start_ns AS call_ns
    FROM missing AS m
    INNER JOIN used AS u ON u.thread_id IS NOT DISTINCT FROM m.thread_id
),
ended AS (
    SELECT p.device_id, n.next_ns AS end_ns, min(p.call_ns) AS call_ns, count(*) AS replays
    FROM placed AS p
    ASOF JOIN later AS n
        ON coalesce(n.device_id, -9223372036854775807) = coalesce(p.device_id, -9223372036854775807) AND n.call_ns > p.call_ns
    GROUP BY p.device_id, n.next_ns
),
reached AS (
    SELECT
        e.device_id, e.start_ns,
        max(e.end_ns) OVER (
            PARTITION BY e.device_id ORDER BY e.start_ns RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS reach_ns
    FROM launched AS e
)
SELECT
    {capture}::INTEGER AS capture_id,
    n.device_id,
    greatest(any_value(n.call_ns), max(r.reach_ns)) AS start_ns,
    n.end_ns,
    any_value(n.replays) AS replays
FROM ended AS n
INNER JOIN reached AS r ON r.device_id IS NOT DISTINCT FROM n.device_id AND r.start_ns = n.end_ns
GROUP BY n.device_id, n.end_ns
HAVING greatest(any_value(n.call_ns), max(r.reach_ns)) < n.end_ns AND max(r.reach_ns) IS NOT NULL;
