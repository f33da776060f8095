-- By how many times fewer independent trials are there than trials, if those of a cluster resemble each other? With k
-- clusters, n trials in all, nn the sum of the squared numbers of trials, y successes in all, and yy the sum of the
-- squared successes of a cluster over its trials: 1 + (nn / n - 1) * r, with r the intraclass correlation by a one-way
-- analysis of variance, at least 0. 1 if the correlation cannot be estimated: one cluster, one trial in each, or no
-- difference between trials.
CREATE MACRO v1._design_effect(k, n, nn, y, yy) AS CASE
    WHEN k < 2 OR n <= k OR y = 0 OR y = n THEN 1.0
    ELSE 1 + (nn / n - 1) * greatest(0.0, (
        (yy - y * y / n) / (k - 1) - (y - yy) / (n - k)
    ) / (
        (yy - y * y / n) / (k - 1) + ((n - nn / n) / (k - 1) - 1) * (y - yy) / (n - k)
    ))
END;

COMMENT ON MACRO v1._design_effect IS 'Trials over independent trials, if trials come in clusters that resemble each other.';
