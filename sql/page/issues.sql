-- What ingest skipped, repaired, guessed or ignored in the selected captures, and in files that gave no capture.
-- Grain: severity × code.
SELECT
    i.severity,
    i.code,
    sum(i.count)::BIGINT AS events,
    sum(i.skipped)::BIGINT AS skipped,
    count(DISTINCT i.capture_id) AS captures,
    min(i.detail) AS example
FROM main.ingest_issue AS i
WHERE i.capture_id IS NULL OR i.capture_id IN (SELECT s.capture_id FROM temp.selected_capture AS s)
GROUP BY i.severity, i.code
ORDER BY i.severity DESC, events DESC, i.code
