-- How far are predictions from measured times, and how many measured times lie in the predicted interval?
-- One row over prediction, which has a row for each measured time.
SELECT
    count(*) AS predictions,
    avg(e.error_percent ORDER BY e.error_percent) AS mean_percent,
    median(e.error_percent) AS median_percent,
    100.0 * count(*) FILTER (e.is_inside) / nullif(count(*), 0) AS inside_percent
FROM (
    SELECT
        100 * abs(p.predicted_ns / nullif(p.measured_ns, 0) - 1) AS error_percent,
        p.measured_ns BETWEEN p.low_ns AND p.high_ns AS is_inside
    FROM prediction AS p
) AS e;
