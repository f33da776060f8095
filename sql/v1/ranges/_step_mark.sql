-- How long is the range that marks a step? Grain: capture × step. From the first start to the last end where several
-- threads mark it; NULL if one of them is still open.
CREATE VIEW v1._step_mark AS
SELECT
    t.capture_id,
    t.step,
    CASE WHEN count(a.duration_ns) = count(*) THEN max(a.start_ns + a.duration_ns) - min(a.start_ns) END AS range_ns
FROM v1._step AS t
INNER JOIN main.annotation AS a ON a.capture_id = t.capture_id AND a.annotation_id = t.annotation_id
WHERE t.step IS NOT NULL
GROUP BY t.capture_id, t.step;
