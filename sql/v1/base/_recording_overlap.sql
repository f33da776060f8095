-- Which recordings with equal labels overlap, and the how manieth of its rank is each?
-- Grain: recording of v1._repeated_recording whose place can be determined: by its path, its steps or its time, the
-- first of these that applies (see v1._capture_cycle). Recordings with the same overlap_no overlap, directly or through
-- others. is_apart: they were placed by clocks whose zeros are not comparable.
CREATE VIEW v1._recording_overlap AS
WITH followed AS (
    SELECT f.*
    FROM v1._repeated_recording AS f
),
axes AS (
    SELECT
        configuration_id,
        bool_and(has_zero) OR NOT bool_or(has_zero) AS is_comparable,
        CASE
            WHEN max(same_paths) = 1 AND min(ranks_of_path) = count(DISTINCT rank) AND count(DISTINCT rank) > 1 THEN 'path'
            WHEN bool_and(first_step IS NOT NULL AND coalesce(next_step > last_step, true)) THEN 'step'
            WHEN bool_and(first_ns IS NOT NULL AND coalesce(next_ns >= last_ns, true)) THEN 'time'
        END AS axis
    FROM followed
    GROUP BY configuration_id
),
placed AS (
    SELECT
        f.capture_id, f.configuration_id, f.rank,
        x.axis = 'time' AND NOT x.is_comparable AS is_apart,
        CASE x.axis WHEN 'path' THEN f.path_no WHEN 'step' THEN f.first_step ELSE f.first_ns END AS from_place,
        CASE x.axis WHEN 'path' THEN f.path_no WHEN 'step' THEN f.last_step ELSE f.last_ns END AS to_place,
        f.first_ns
    FROM followed AS f
    INNER JOIN axes AS x ON x.configuration_id = f.configuration_id
    WHERE x.axis IS NOT NULL
),
begun AS (
    SELECT
        p.capture_id, p.configuration_id, p.rank, p.is_apart, p.from_place, p.first_ns,
        coalesce(p.from_place > max(p.to_place) OVER (
            PARTITION BY p.configuration_id ORDER BY p.from_place, p.to_place, p.capture_id
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ), false) AS begins_another,
        p.to_place
    FROM placed AS p
)
SELECT
    b.capture_id, b.configuration_id, b.rank, b.is_apart, b.first_ns,
    sum(b.begins_another::INTEGER) OVER (
        PARTITION BY b.configuration_id ORDER BY b.from_place, b.to_place, b.capture_id
    ) AS overlap_no,
    row_number() OVER (
        PARTITION BY b.configuration_id, b.rank ORDER BY b.from_place, b.to_place, b.capture_id
    ) AS place_in_rank,
    count(*) OVER (PARTITION BY b.configuration_id, b.rank) AS recordings
FROM begun AS b;
