-- One rank's part in one collective call, with the other ranks' times, on the common clock.
-- Grain: kernel of class collective. v1._collective_instance describes the common clock; without one, columns that
-- compare times of different ranks are NULL. Waiting and latency are durations and need no common clock. The last rank
-- to start is given only if it starts later than the next-to-last by more than the clock residual (the median); in a
-- tie there is none.
CREATE VIEW v1._collective_member AS
WITH parts AS (
    SELECT i.*
    FROM v1._collective_instance AS i
),
calls AS (
    SELECT
        collective_id,
        count(*) AS ranks,
        CASE WHEN count(DISTINCT capture_id) > 1 AND bool_and(is_aligned) THEN max(residual_median_ns) END
            AS clock_residual_ns,
        min(duration_ns) AS latency_ns,
        sum(duration_ns)::BIGINT AS match_collective_ns,
        max(message_bytes) AS match_message_bytes,
        CASE
            WHEN count(is_even) = 0 THEN NULL
            WHEN bool_and(is_even) AND min(message_bytes) = max(message_bytes)
                THEN max(message_bytes) * (max(ranks_expected) - 1) // max(ranks_expected)
            WHEN count(sent_bytes) = count(*) AND count(*) = max(ranks_expected) THEN max(sent_bytes)
        END AS match_sent_bytes,
        coalesce(min(message_bytes) < max(message_bytes) OR NOT bool_and(is_even), false) AS is_uneven
    FROM parts
    GROUP BY collective_id
),
common AS (
    SELECT
        p.* EXCLUDE (message_bytes, sent_bytes, is_even, residual_median_ns, start_ns),
        k.ranks, k.clock_residual_ns, k.latency_ns, k.match_collective_ns,
        k.match_message_bytes AS message_bytes,
        k.match_sent_bytes AS sent_bytes,
        k.is_uneven,
        p.duration_ns - k.latency_ns AS wait_ns,
        k.match_collective_ns - k.ranks * k.latency_ns AS match_wait_ns,
        p.start_ns
    FROM parts AS p
    INNER JOIN calls AS k ON k.collective_id = p.collective_id
),
placed AS (
    SELECT
        collective_id, start_ns, member,
        row_number() OVER (PARTITION BY collective_id ORDER BY start_ns DESC, member) AS place
    FROM common
    WHERE start_ns IS NOT NULL
),
lasts AS (
    SELECT
        collective_id,
        max(member) FILTER (place = 1) AS member,
        min(start_ns) AS first_start_ns,
        max(start_ns) - max(start_ns) FILTER (place = 2) AS margin_ns
    FROM placed
    GROUP BY collective_id
)
SELECT
    c.*,
    c.start_ns + c.duration_ns AS end_ns,
    t.first_start_ns,
    t.margin_ns,
    CASE WHEN t.margin_ns > coalesce(c.clock_residual_ns, 0) THEN t.member END AS last_member
FROM common AS c
LEFT JOIN lasts AS t ON t.collective_id = c.collective_id;
