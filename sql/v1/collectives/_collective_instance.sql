-- Every matched kernel on the common clock, with its call after removing kernels that cannot belong to it.
-- Grain: kernel of class collective. Common clock: the capture's own clock, converted to Unix time if its zero is
-- known, and corrected by main.clock_alignment if that has every rank of the call. Otherwise clocks are used as
-- recorded if all zeros are known or none is; else start_ns is NULL.
-- In a symmetric collective, no rank can end before the last rank has started. Matched kernels that end earlier than
-- that on aligned clocks, by 0.1 ms and ten times the residual, belong to another call (a call was lost, or their rank
-- recorded other iterations): they are removed, and are unmatched if no other kernel is left with them.
CREATE VIEW v1._collective_instance AS
WITH parts AS (
    SELECT
        e.* EXCLUDE (collective_id, start_ns, end_ns, clock_zero_unix_ns),
        e.collective_id AS match_id,
        e.start_ns + coalesce(e.clock_zero_unix_ns, 0) AS recorded_start_ns,
        e.clock_zero_unix_ns IS NOT NULL AS has_zero,
        a.reference_capture_id, a.at_ns, a.offset_ns,
        CASE WHEN a.uses_drift THEN a.drift_ppm / 1e6 / (1 + a.drift_ppm / 1e6) ELSE 0 END AS stretch,
        a.residual_median_ns
    FROM v1._collective_match AS e
    LEFT JOIN main.clock_alignment AS a ON a.capture_id = e.capture_id
),
clocks AS (
    SELECT
        match_id,
        count(DISTINCT capture_id) = 1 OR count(reference_capture_id) = count(*)
            AND min(reference_capture_id) = max(reference_capture_id) AS is_aligned,
        is_aligned OR bool_and(has_zero) OR NOT bool_or(has_zero) AS is_comparable,
        100000 + 10 * coalesce(max(residual_median_ns), 0) AS slack_ns
    FROM parts
    GROUP BY match_id
),
timed AS (
    SELECT
        p.* EXCLUDE (recorded_start_ns, has_zero, reference_capture_id, at_ns, offset_ns, stretch),
        k.is_aligned,
        CASE
            WHEN k.is_aligned AND p.collective IN ('allreduce', 'allgather', 'reduce_scatter', 'alltoall', 'barrier')
            THEN k.slack_ns
        END AS slack_ns,
        CASE
            WHEN NOT k.is_comparable THEN NULL
            WHEN NOT k.is_aligned OR p.offset_ns IS NULL THEN p.recorded_start_ns
            ELSE p.recorded_start_ns - p.offset_ns
                - round((p.recorded_start_ns - p.offset_ns - p.at_ns) * p.stretch)::BIGINT
        END AS start_ns
    FROM parts AS p
    INNER JOIN clocks AS k ON k.match_id = p.match_id
),
judged AS (
    SELECT
        t.*,
        coalesce(start_ns + duration_ns < max(start_ns) OVER (PARTITION BY match_id) - slack_ns, false) AS is_early
    FROM timed AS t
),
chained AS (
    SELECT
        j.* EXCLUDE (slack_ns),
        is_early AND start_ns > slack_ns + max(start_ns + duration_ns) OVER (
            PARTITION BY match_id, is_early ORDER BY start_ns, member, event_id
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS begins_another
    FROM judged AS j
),
split AS (
    SELECT
        c.* EXCLUDE (begins_another),
        sum(coalesce(begins_another, false)::INTEGER) OVER (
            PARTITION BY match_id, is_early ORDER BY start_ns, member, event_id
        ) AS part
    FROM chained AS c
)
SELECT
    s.* EXCLUDE (match_id, match_rule, is_early, part),
    CASE
        WHEN part = 0 AND NOT is_early THEN match_id
        ELSE max(match_id) OVER () + dense_rank() OVER (PARTITION BY part = 0 AND NOT is_early ORDER BY match_id, is_early DESC, part)
    END AS collective_id,
    CASE
        WHEN count(*) OVER call = 1 AND count(*) OVER (PARTITION BY match_id) > 1 THEN 'unmatched'
        ELSE match_rule
    END AS match_rule
FROM split AS s
WINDOW call AS (PARTITION BY match_id, is_early, part);
