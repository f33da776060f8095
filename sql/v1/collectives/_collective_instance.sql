-- Every matched kernel on the common clock, with its call after removing kernels that cannot belong to it.
-- Grain: kernel of class collective. Common clock: the capture's own clock, converted to Unix time if its zero is
-- known, and corrected by main.clock_alignment if that has every rank of the call. Otherwise clocks are used as
-- recorded if all zeros are known or none is; else start_ns is NULL.
-- In a symmetric collective, no rank can end before the last rank has started. Matched kernels that end earlier than
-- that on aligned clocks, by 0.1 ms and ten times the residual, belong to another call (a call was lost, or their rank
-- recorded other iterations): they are removed, and are unmatched if no other kernel is left with them.
CREATE VIEW v1._collective_instance AS
WITH clocks AS (
    SELECT
        s.capture_id, s.source, s.labels,
        s.clock_zero_unix_ns IS NOT NULL AS has_zero,
        a.reference_capture_id, a.at_ns, a.offset_ns,
        CASE WHEN a.uses_drift THEN a.drift_ppm / 1e6 / (1 + a.drift_ppm / 1e6) ELSE 0 END AS stretch,
        a.residual_median_ns
    FROM v1._capture_set AS s
    LEFT JOIN main.clock_alignment AS a ON a.capture_id = s.capture_id
),
parts AS (
    SELECT
        e.* EXCLUDE (collective_id, start_ns, end_ns, clock_zero_unix_ns),
        e.collective_id AS match_id,
        e.start_ns + coalesce(e.clock_zero_unix_ns, 0) AS recorded_start_ns,
        CASE
            WHEN k.offset_ns IS NULL THEN recorded_start_ns
            ELSE recorded_start_ns - k.offset_ns
                - round((recorded_start_ns - k.offset_ns - k.at_ns) * k.stretch)::BIGINT
        END AS aligned_start_ns,
        k.has_zero, k.reference_capture_id, k.residual_median_ns
    FROM v1._collective_match AS e
    INNER JOIN clocks AS k ON k.capture_id = e.capture_id
),
matches AS (
    SELECT
        match_id,
        count(*) AS kernels,
        min(capture_id) = max(capture_id) OR count(reference_capture_id) = count(*)
            AND min(reference_capture_id) = max(reference_capture_id) AS is_aligned,
        is_aligned OR bool_and(has_zero) OR NOT bool_or(has_zero) AS is_comparable,
        100000 + 10 * coalesce(max(residual_median_ns), 0) AS slack_ns,
        CASE
            WHEN is_aligned AND min(collective) IN ('allreduce', 'allgather', 'reduce_scatter', 'alltoall', 'barrier')
                THEN max(aligned_start_ns) - slack_ns
        END AS first_end_ns
    FROM parts
    GROUP BY match_id
),
-- Kernels that end too early. They are few, so that only they are sorted.
early AS (
    SELECT
        p.match_id, p.capture_id, p.event_id, p.member,
        p.aligned_start_ns AS start_ns,
        p.aligned_start_ns + p.duration_ns AS end_ns,
        m.slack_ns
    FROM parts AS p
    INNER JOIN matches AS m ON m.match_id = p.match_id
    WHERE p.aligned_start_ns + p.duration_ns < m.first_end_ns
),
chained AS (
    SELECT
        e.*,
        coalesce(start_ns > slack_ns + max(end_ns) OVER (
            PARTITION BY match_id ORDER BY start_ns, member, event_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ), false) AS begins_another
    FROM early AS e
),
split AS (
    SELECT
        c.match_id, c.capture_id, c.event_id,
        sum(begins_another::INTEGER) OVER (PARTITION BY match_id ORDER BY start_ns, member, event_id) AS part
    FROM chained AS c
),
others AS (
    SELECT
        s.capture_id, s.event_id,
        (SELECT max(m.match_id) FROM matches AS m) + dense_rank() OVER (ORDER BY match_id, part) AS collective_id,
        count(*) OVER (PARTITION BY match_id, part) AS kernels
    FROM split AS s
),
removed AS (
    SELECT match_id, count(*) AS kernels
    FROM early
    GROUP BY match_id
)
SELECT
    p.* EXCLUDE (match_id, match_rule, recorded_start_ns, aligned_start_ns, has_zero, reference_capture_id),
    k.source, k.labels,
    m.is_aligned,
    CASE WHEN m.is_aligned THEN p.aligned_start_ns WHEN m.is_comparable THEN p.recorded_start_ns END AS start_ns,
    coalesce(o.collective_id, p.match_id) AS collective_id,
    CASE
        WHEN m.kernels > 1 AND coalesce(o.kernels, m.kernels - coalesce(r.kernels, 0)) = 1 THEN 'unmatched'
        ELSE p.match_rule
    END AS match_rule
FROM parts AS p
INNER JOIN matches AS m ON m.match_id = p.match_id
INNER JOIN clocks AS k ON k.capture_id = p.capture_id
LEFT JOIN removed AS r ON r.match_id = p.match_id
LEFT JOIN others AS o ON o.capture_id = p.capture_id AND o.event_id = p.event_id;
