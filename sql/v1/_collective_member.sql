-- One rank's part in one collective call, beside what the others did in it, on the common clock.
-- Grain: kernel of class collective. Common clock: the capture's own, placed in the world where its zero is known, and
-- corrected by main.clock_alignment where that knows every rank of the call. Where it does not, clocks are taken as
-- recorded, if all zeros are known or none is; else nothing is said that compares times of different ranks. Waiting and
-- latency are durations and need no common clock. The last rank to start is said only where it starts later than
-- the next one by more than the clocks' residual (the median); nobody is last in a tie.
CREATE VIEW v1._collective_member AS
WITH parts AS (
    SELECT
        m.collective_id, m.match_rule,
        e.capture_id, e.event_id, e.device_id, e.set_id, e.source, e.labels, e.rank, e.member, e.is_by_rank,
        e.collective, e.recorded_as, e.name, e.dtype, e.message_bytes, e.message_elements,
        e.group_name, e.group_size, e.group_ranks, e.sequence, e.ranks_expected, e.step, e.step_index,
        e.duration_ns,
        e.start_ns + coalesce(e.clock_zero_unix_ns, 0) AS recorded_start_ns,
        e.clock_zero_unix_ns IS NOT NULL AS has_zero,
        a.reference_capture_id,
        a.at_ns,
        a.offset_ns,
        CASE WHEN a.uses_drift THEN a.drift_ppm / 1e6 / (1 + a.drift_ppm / 1e6) ELSE 0 END AS stretch,
        a.residual_median_ns
    FROM v1._collective_match AS m
    INNER JOIN v1._collective_event AS e ON e.capture_id = m.capture_id AND e.event_id = m.event_id
    LEFT JOIN main.clock_alignment AS a ON a.capture_id = e.capture_id
),
clocks AS (
    SELECT
        collective_id,
        count(*) AS ranks,
        count(DISTINCT capture_id) = 1 OR count(reference_capture_id) = count(*)
            AND min(reference_capture_id) = max(reference_capture_id) AS is_aligned,
        is_aligned OR bool_and(has_zero) OR NOT bool_or(has_zero) AS is_comparable,
        CASE WHEN count(DISTINCT capture_id) > 1 AND is_aligned THEN max(residual_median_ns) END AS clock_residual_ns,
        min(duration_ns) AS latency_ns,
        sum(duration_ns)::BIGINT AS match_collective_ns,
        max(message_bytes) AS match_message_bytes
    FROM parts
    GROUP BY collective_id
),
common AS (
    SELECT
        p.collective_id, p.match_rule, p.capture_id, p.event_id, p.device_id, p.set_id, p.source, p.labels, p.rank,
        p.member, p.is_by_rank, p.collective, p.recorded_as, p.name, p.dtype, p.message_elements,
        p.group_name, p.group_size, p.group_ranks, p.sequence, p.ranks_expected, p.step, p.step_index, p.duration_ns,
        k.ranks, k.is_aligned, k.clock_residual_ns, k.latency_ns, k.match_collective_ns,
        k.match_message_bytes AS message_bytes,
        p.duration_ns - k.latency_ns AS wait_ns,
        k.match_collective_ns - k.ranks * k.latency_ns AS match_wait_ns,
        CASE
            WHEN NOT k.is_comparable THEN NULL
            WHEN NOT k.is_aligned OR p.offset_ns IS NULL THEN p.recorded_start_ns
            ELSE p.recorded_start_ns - p.offset_ns
                - round((p.recorded_start_ns - p.offset_ns - p.at_ns) * p.stretch)::BIGINT
        END AS start_ns
    FROM parts AS p
    INNER JOIN clocks AS k ON k.collective_id = p.collective_id
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
    c.collective_id, c.match_rule, c.capture_id, c.event_id, c.device_id, c.set_id, c.source, c.labels, c.rank,
    c.member, c.is_by_rank, c.collective, c.recorded_as, c.name, c.dtype, c.message_elements,
    c.group_name, c.group_size, c.group_ranks, c.sequence, c.ranks_expected, c.step, c.step_index, c.duration_ns,
    c.ranks, c.is_aligned, c.clock_residual_ns, c.latency_ns, c.match_collective_ns, c.message_bytes,
    c.wait_ns, c.match_wait_ns,
    c.start_ns,
    c.start_ns + c.duration_ns AS end_ns,
    t.first_start_ns,
    t.margin_ns,
    CASE WHEN t.margin_ns > coalesce(c.clock_residual_ns, 0) THEN t.member END AS last_member
FROM common AS c
LEFT JOIN lasts AS t ON t.collective_id = c.collective_id;
