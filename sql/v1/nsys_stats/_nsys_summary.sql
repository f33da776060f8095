-- The columns that every report of nsys stats has about durations or other integers: sum, mean, median, extremes and
-- sample standard deviation; mean, median and deviation are rounded to 0.1, as in nsys stats.
-- n: the number of values, count(*) if none is NULL.
CREATE MACRO v1._nsys_summary(n, number) AS {
    'instances': n,
    'total': sum(number),
    'mean': v1._rounded_mean(sum(number), n),
    'median': round(median(number), 1),
    'least': min(number),
    'most': max(number),
    'stddev': round(v1._sample_stddev(n, sum(number), sum(number::HUGEINT * number)), 1)
};

COMMENT ON MACRO v1._nsys_summary IS 'Sum, mean, median, extremes and deviation of n whole numbers as nsys stats prints them: a struct for each group.';
