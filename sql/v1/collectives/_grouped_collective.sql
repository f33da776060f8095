-- Which member of its configuration ran each collective kernel, and what is its group called?
-- Grain: kernel of class collective. Member: the rank, if every capture of the set has one and used one device; else the
-- device, if devices differ; else a number. common_name is the name of the group. If the ranks of a list have no common
-- name but equally many names (each numbers its own groups), it is the position of the name among those that the rank
-- has for the list. Truncated lists (...) are too ambiguous for that.
-- This is one view, not two, because each would read all events into memory again, which takes a tenth longer.
CREATE VIEW v1._grouped_collective AS
WITH events AS (
    SELECT e.*
    FROM v1._collective_kernel AS e
),
-- The operators of kernels that neither their name nor the recorded collective tells apart.
contexts AS (
    SELECT e.capture_id, e.event_id, o.name AS op_name, p.name AS outer_op_name
    FROM events AS e
    INNER JOIN main.op AS o ON o.capture_id = e.capture_id AND o.op_id = e.naming_op_id
    LEFT JOIN main.op AS p ON p.capture_id = o.capture_id AND p.op_id = o.parent_op_id
    WHERE e.naming_op_id IS NOT NULL
),
words AS (
    SELECT DISTINCT unnest([c.op_name, c.outer_op_name]) AS word FROM contexts AS c
),
meanings AS (
    SELECT w.word, v1._collective_spelt(replace(replace(lower(w.word), '_', ''), ' ', '')) AS collective FROM words AS w
),
operators AS (
    SELECT c.capture_id, c.event_id, coalesce(o.collective, p.collective) AS collective
    FROM contexts AS c
    LEFT JOIN meanings AS o ON o.word = c.op_name
    LEFT JOIN meanings AS p ON p.word = c.outer_op_name
),
participants AS (
    SELECT DISTINCT e.set_id, e.capture_id, e.device_id, e.rank FROM events AS e
),
members AS (
    SELECT
        p.set_id, p.capture_id, p.device_id,
        count(*) OVER run AS members,
        bool_and(p.rank IS NOT NULL) OVER run AND count(DISTINCT p.capture_id) OVER run = members AS is_by_rank,
        is_by_rank AND count(DISTINCT p.rank) OVER run < members AS has_duplicate,
        CASE
            WHEN is_by_rank THEN p.rank
            WHEN count(DISTINCT p.device_id) OVER run = members THEN p.device_id
            ELSE row_number() OVER (PARTITION BY p.set_id ORDER BY p.capture_id, p.device_id) - 1
        END::INTEGER AS member
    FROM participants AS p
    WINDOW run AS (PARTITION BY p.set_id)
),
group_names AS (
    SELECT
        m.set_id, m.member, e.list_id, e.group_name,
        row_number() OVER (
            PARTITION BY m.set_id, m.member, e.list_id
            ORDER BY TRY_CAST(e.group_name AS BIGINT) NULLS LAST, min(e.start_ns), e.group_name
        ) AS place,
        count(*) OVER (PARTITION BY m.set_id, e.list_id, e.group_name) AS members_with_it,
        count(*) OVER (PARTITION BY m.set_id, m.member, e.list_id) AS names
    FROM events AS e
    INNER JOIN members AS m
        ON m.set_id = e.set_id AND m.capture_id = e.capture_id AND m.device_id IS NOT DISTINCT FROM e.device_id
    WHERE e.group_name IS NOT NULL AND NOT e.is_shortened
    GROUP BY m.set_id, m.member, e.list_id, e.group_name
),
group_lists AS (
    SELECT
        set_id, list_id,
        max(members_with_it) < count(DISTINCT member) AND min(names) = max(names) AS is_by_place
    FROM group_names
    GROUP BY set_id, list_id
)
SELECT
    e.* EXCLUDE (spelt_as, naming_op_id, is_shortened),
    coalesce(o.collective, e.spelt_as, 'other') AS collective,
    coalesce(e.group_size, m.members) AS ranks_expected,
    m.member, m.members, m.is_by_rank, m.has_duplicate,
    CASE WHEN g.is_by_place THEN '#' || w.place ELSE e.group_name END AS common_name
FROM events AS e
INNER JOIN members AS m
    ON m.set_id = e.set_id AND m.capture_id = e.capture_id AND m.device_id IS NOT DISTINCT FROM e.device_id
LEFT JOIN operators AS o ON o.capture_id = e.capture_id AND o.event_id = e.event_id
LEFT JOIN group_lists AS g ON g.set_id = e.set_id AND g.list_id = e.list_id
LEFT JOIN group_names AS w
    ON w.set_id = e.set_id AND w.member = m.member AND w.list_id = e.list_id
    AND w.group_name = e.group_name;
