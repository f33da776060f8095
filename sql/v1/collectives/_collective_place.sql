-- At which position is each collective kernel among those that it may be matched by?
-- Grain: kernel of class collective, with the columns of v1._collective_event but its name. Kernels of equal group, collective and
-- size are of one kind; kinds and groups are numbered, because texts are slow to sort and compare. Positions are counted
-- by start among the kernels of a kind and member: per sequence number (sequence_place), per marked step (step_place) and
-- over the capture (place). fullest is the member with the most kernels, most_calls their number, calls_here the member's.
CREATE VIEW v1._collective_place AS
WITH events AS (
    SELECT e.* EXCLUDE (name)
    FROM v1._collective_event AS e
),
-- group_key: the common name of a group and the number of its list of ranks, equal on all of its ranks.
keys AS (
    SELECT
        e.set_id, e.common_name, e.list_id, e.collective, e.size_name, e.size_elements,
        coalesce(e.common_name, '') || '|' || coalesce(lpad(e.list_id::VARCHAR, 9, '0'), '') AS group_key,
        coalesce(e.size_name, e.size_elements::VARCHAR, '') AS size_key
    FROM events AS e
    GROUP BY e.set_id, e.common_name, e.list_id, e.collective, e.size_name, e.size_elements
),
kinds AS (
    SELECT
        k.set_id, k.common_name, k.list_id, k.collective, k.size_name, k.size_elements,
        dense_rank() OVER (ORDER BY k.set_id, k.group_key, k.collective, k.size_key)::INTEGER AS kind_no
    FROM keys AS k
),
numbered AS (
    SELECT
        e.* EXCLUDE (common_name, size_name, size_elements),
        k.kind_no,
        e.start_ns + coalesce(e.clock_zero_unix_ns, 0) AS common_start_ns,
        e.end_ns + coalesce(e.clock_zero_unix_ns, 0) AS common_end_ns,
        e.is_grouped AND e.sequence IS NOT NULL AS is_sequenced
    FROM events AS e
    INNER JOIN kinds AS k
        ON k.set_id = e.set_id AND k.collective = e.collective
        AND k.common_name IS NOT DISTINCT FROM e.common_name AND k.list_id IS NOT DISTINCT FROM e.list_id
        AND k.size_name IS NOT DISTINCT FROM e.size_name AND k.size_elements IS NOT DISTINCT FROM e.size_elements
),
placed AS (
    SELECT
        n.*,
        row_number() OVER (
            PARTITION BY n.kind_no, n.member, n.sequence ORDER BY n.start_ns, n.event_id, n.capture_id
        ) AS sequence_place,
        row_number() OVER (
            PARTITION BY n.kind_no, n.member, n.marked_step ORDER BY n.start_ns, n.event_id, n.capture_id
        ) AS step_place,
        row_number() OVER kind AS place,
        n.end_ns - lag(n.end_ns) OVER kind AS from_end_to_end_ns
    FROM numbered AS n
    WINDOW kind AS (PARTITION BY n.kind_no, n.member ORDER BY n.start_ns, n.event_id, n.capture_id)
),
step_calls AS (
    SELECT kind_no, marked_step, member, count(*) AS calls
    FROM placed
    GROUP BY kind_no, marked_step, member
),
step_kinds AS (
    SELECT kind_no, marked_step, min(calls) = max(calls) AS agrees
    FROM step_calls
    GROUP BY kind_no, marked_step
),
calls AS (
    SELECT kind_no, member, sum(calls)::BIGINT AS calls
    FROM step_calls
    GROUP BY kind_no, member
),
kind_calls AS (
    SELECT
        kind_no,
        count(*) AS members_here,
        max(calls) AS most_calls,
        min(calls) = max(calls) AS agrees,
        arg_min(member, (-calls, member)) AS fullest
    FROM calls
    GROUP BY kind_no
),
-- Order within steps is unusable where some kernels are in no step and the numbers of calls differ.
judged AS (
    SELECT kind_no, bool_and(agrees) AND bool_or(marked_step IS NOT NULL) AS is_by_step
    FROM step_kinds
    GROUP BY kind_no
)
SELECT
    p.*,
    c.calls AS calls_here,
    k.members_here, k.most_calls, k.agrees, k.fullest,
    j.is_by_step
FROM placed AS p
INNER JOIN calls AS c ON c.kind_no = p.kind_no AND c.member = p.member
INNER JOIN kind_calls AS k ON k.kind_no = p.kind_no
INNER JOIN judged AS j ON j.kind_no = p.kind_no;
