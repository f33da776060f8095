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
        CASE WHEN min(capture_id) < max(capture_id) AND bool_and(is_aligned) THEN max(residual_median_ns) END
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
        coalesce(min(message_bytes) < max(message_bytes) OR NOT bool_and(is_even), false) AS is_uneven,
        min(start_ns) AS first_start_ns,
        max(start_ns, 2) AS last_starts,
        last_starts[1] - last_starts[2] AS margin_ns,
        CASE WHEN margin_ns > coalesce(clock_residual_ns, 0) THEN arg_max(member, start_ns) END AS last_member
    FROM parts
    GROUP BY collective_id
)
SELECT
    p.* EXCLUDE (message_bytes, sent_bytes, is_even, residual_median_ns, start_ns),
    c.ranks, c.clock_residual_ns, c.latency_ns, c.match_collective_ns,
    c.match_message_bytes AS message_bytes,
    c.match_sent_bytes AS sent_bytes,
    c.is_uneven,
    p.duration_ns - c.latency_ns AS wait_ns,
    c.match_collective_ns - c.ranks * c.latency_ns AS match_wait_ns,
    p.start_ns,
    p.start_ns + p.duration_ns AS end_ns,
    c.first_start_ns, c.margin_ns, c.last_member
FROM parts AS p
INNER JOIN calls AS c ON c.collective_id = p.collective_id;
