-- How are the durations of one kernel distributed? Like nsys's recipe cuda_gpu_kern_hist.
-- Grain: kernel name × bin. The bins of a kernel are equally wide on a logarithmic scale from its shortest to its
-- longest duration, so that one cold call does not push all others into one bin. There are 2 · calls^(1/3) of them
-- (Rice's rule), at most 40, and no more than there are whole nanoseconds. They are based on all calls, even if --by
-- separates calls. A logarithm may be off in its last digit, so the integer bounds decide.
CREATE VIEW v1.kernel_histogram AS
WITH calls AS (
    SELECT
        /* by e */
        e.name AS kernel_name,
        greatest(e.duration_ns, 1) AS length_ns
    FROM v1._unclassed_event AS e /* join e */
    WHERE e.kind = 'kernel' /* filter e */
),
bounds AS (
    SELECT
        kernel_name,
        count(*) AS all_calls,
        min(length_ns) AS min_ns,
        max(length_ns) AS max_ns,
        least(40, max(length_ns) - min(length_ns) + 1, ceil(2 * cbrt(count(*))))::BIGINT AS bins
    FROM calls
    GROUP BY kernel_name
),
steps AS (
    SELECT kernel_name, all_calls, min_ns, max_ns, bins, (ln(max_ns) - ln(min_ns)) / bins AS step
    FROM bounds
),
guesses AS (
    SELECT
        /* by c */
        c.kernel_name,
        c.length_ns,
        b.min_ns,
        b.bins,
        b.step,
        CASE WHEN b.step = 0 THEN 0 ELSE floor((ln(c.length_ns) - ln(b.min_ns)) / b.step)::BIGINT END AS place
    FROM calls AS c
    INNER JOIN steps AS b ON b.kernel_name = c.kernel_name
),
-- A logarithm may be off in its last digit, so the integer bounds decide.
counts AS (
    SELECT
        /* by */
        kernel_name,
        least(CASE
            WHEN length_ns < ceil(min_ns * exp(place * step)) THEN place - 1
            WHEN step > 0 AND length_ns >= ceil(min_ns * exp((place + 1) * step)) THEN place + 1
            ELSE place
        END, bins - 1) AS place,
        count(*) AS calls,
        sum(length_ns) AS total_ns
    FROM guesses
    GROUP BY ALL
)
SELECT
    /* by n */
    n.kernel_name AS name,
    n.place + 1 AS bin,
    b.bins,
    ceil(b.min_ns * exp(n.place * b.step))::BIGINT AS from_ns,
    CASE WHEN n.place + 1 = b.bins THEN b.max_ns ELSE ceil(b.min_ns * exp((n.place + 1) * b.step))::BIGINT END AS to_ns,
    n.calls,
    100.0 * n.calls / sum(n.calls) OVER (PARTITION BY /* by n */ n.kernel_name) AS calls_percent,
    n.total_ns::BIGINT AS total_ns,
    b.all_calls,
    v1._short_name(n.kernel_name) AS short_name
FROM counts AS n
INNER JOIN steps AS b ON b.kernel_name = n.kernel_name;

COMMENT ON VIEW v1.kernel_histogram IS 'Histogram of the durations of each kernel, like nsys''s cuda_gpu_kern_hist. Empty bins have no row. Grain: kernel name × bin.';
COMMENT ON COLUMN v1.kernel_histogram.name IS 'Kernel name as recorded.';
COMMENT ON COLUMN v1.kernel_histogram.bin IS 'Index of the bin, from 1 (shortest durations). [-]';
COMMENT ON COLUMN v1.kernel_histogram.bins IS 'Number of bins of the kernel, including empty ones. [count]';
COMMENT ON COLUMN v1.kernel_histogram.from_ns IS 'Lower bound of the bin, inclusive. [ns]';
COMMENT ON COLUMN v1.kernel_histogram.to_ns IS 'Upper bound of the bin, exclusive except in the last bin. [ns]';
COMMENT ON COLUMN v1.kernel_histogram.calls IS 'Number of calls in the bin. [count]';
COMMENT ON COLUMN v1.kernel_histogram.calls_percent IS 'Share of the kernel''s calls that are in the bin (with --by: in the group). [percent]';
COMMENT ON COLUMN v1.kernel_histogram.total_ns IS 'Sum of their durations, each counted as at least 1 ns. [ns]';
COMMENT ON COLUMN v1.kernel_histogram.all_calls IS 'Number of calls of the kernel, over all bins and --by groups. [count]';
COMMENT ON COLUMN v1.kernel_histogram.short_name IS 'Kernel name without return type, namespaces, template arguments and parameters, like nsys''s shortName.';
