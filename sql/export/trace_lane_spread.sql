-- Propagates lanes along previous, doubling the distance each time it runs.
-- In:  temp table trace_link.
-- Out: the same; the last statement writes as many rows as had no lane before.
UPDATE trace_link SET lane = p.lane, previous = p.previous
FROM trace_link AS p
WHERE trace_link.lane IS NULL AND p.n = trace_link.previous;
