-- How far is each prediction from its measured time? NULL if that is 0.
-- In:  prediction: place, measured_ns, predicted_ns.
-- Out: a row per prediction, in order of place. [percent]
SELECT (p.predicted_ns / nullif(p.measured_ns, 0) - 1) * 100 AS error_percent
FROM prediction AS p
ORDER BY p.place
