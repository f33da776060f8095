-- At which position is each collective kernel among those that it may be matched by?
-- Grain: kernel of class collective, with the columns of v1._collective_event. Positions are counted by start among
-- kernels of equal member, group, collective and size: per sequence number (sequence_place), per marked step
-- (step_place) and over the capture (place). fullest is the member with the most kernels, most_calls their number.
CREATE VIEW v1._collective_place AS
WITH numbered AS (
    SELECT
        e.*,
        e.start_ns + coalesce(e.clock_zero_unix_ns, 0) AS common_start_ns,
        e.end_ns + coalesce(e.clock_zero_unix_ns, 0) AS common_end_ns,
        e.is_grouped AND e.sequence IS NOT NULL AS is_sequenced,
        row_number() OVER (
            PARTITION BY e.set_id, e.member, e.group_key, e.collective, e.size_key, e.sequence
            ORDER BY e.start_ns, e.event_id, e.capture_id
        ) AS sequence_place,
        row_number() OVER (
            PARTITION BY e.set_id, e.member, e.group_key, e.collective, e.size_key, e.marked_step
            ORDER BY e.start_ns, e.event_id, e.capture_id
        ) AS step_place,
        row_number() OVER (
            PARTITION BY e.set_id, e.member, e.group_key, e.collective, e.size_key
            ORDER BY e.start_ns, e.event_id, e.capture_id
        ) AS place,
        e.end_ns - lag(e.end_ns) OVER (
            PARTITION BY e.set_id, e.member, e.group_key, e.collective, e.size_key
            ORDER BY e.start_ns, e.event_id, e.capture_id
        ) AS from_end_to_end_ns
    FROM v1._collective_event AS e
),
step_calls AS (
    SELECT set_id, group_key, collective, size_key, marked_step, member, count(*) AS calls
    FROM numbered
    GROUP BY set_id, group_key, collective, size_key, marked_step, member
),
step_kinds AS (
    SELECT
        set_id, group_key, collective, size_key, marked_step,
        min(calls) = max(calls) AS agrees
    FROM step_calls
    GROUP BY set_id, group_key, collective, size_key, marked_step
),
calls AS (
    SELECT set_id, group_key, collective, size_key, member, sum(calls)::BIGINT AS calls
    FROM step_calls
    GROUP BY set_id, group_key, collective, size_key, member
),
kinds AS (
    SELECT
        set_id, group_key, collective, size_key,
        count(*) AS members_here,
        max(calls) AS most_calls,
        min(calls) = max(calls) AS agrees,
        arg_min(member, (-calls, member)) AS fullest
    FROM calls
    GROUP BY set_id, group_key, collective, size_key
),
-- Order within steps is unusable where some kernels are in no step and the numbers of calls differ.
judged AS (
    SELECT
        k.set_id, k.group_key, k.collective, k.size_key, k.members_here, k.most_calls, k.agrees, k.fullest,
        bool_and(s.agrees) AND bool_or(s.marked_step IS NOT NULL) AS is_by_step
    FROM kinds AS k
    INNER JOIN step_kinds AS s USING (set_id, group_key, collective, size_key)
    GROUP BY ALL
)
SELECT n.*, j.members_here, j.most_calls, j.agrees, j.fullest, j.is_by_step
FROM numbered AS n
INNER JOIN judged AS j USING (set_id, group_key, collective, size_key);
