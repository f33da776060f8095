-- Gives a slice the lane of the slice in previous; if that has none yet, its previous, so that the distance covered
-- doubles with each run.
-- In and out: temp table trace_link. Run by timeline.py until it updates no row.
UPDATE trace_link SET lane = p.lane, previous = p.previous
FROM trace_link AS p
WHERE trace_link.lane IS NULL AND p.n = trace_link.previous;
