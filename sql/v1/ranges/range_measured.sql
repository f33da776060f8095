-- How do times that a program took of itself compare with the ranges of a trace around the same work?
-- Grain: measured name and settings × rule. A measured time belongs to the ranges of its name in all captures whose labels do
-- not contradict its settings (model=small, context=128) or the labels of its own file. Ranges without warm-up, as in
-- v1.range_time. A program that waits for the GPU before it stops its clock measures what the GPU range does, plus the
-- time of the host; one that does not wait measures the range on the host.
CREATE VIEW v1.range_measured AS
WITH measured AS (
    SELECT
        m.name,
        m.settings,
        map_concat(c.labels, m.settings) AS conditions,
        coalesce(
            sum(m.time_ns) FILTER (m.statistic = 'mean') / count(*) FILTER (m.statistic = 'mean'),
            sum(m.time_ns) FILTER (m.statistic = 'single') / count(*) FILTER (m.statistic = 'single')
        ) AS mean_ns,
        coalesce(
            sum(m.time_ns) FILTER (m.statistic = 'median') / count(*) FILTER (m.statistic = 'median'),
            median(m.time_ns) FILTER (m.statistic = 'single')
        ) AS median_ns,
        coalesce(
            sum(m.time_ns) FILTER (m.statistic = 'stddev') / count(*) FILTER (m.statistic = 'stddev'),
            v1._sample_stddev(
                count(*) FILTER (m.statistic = 'single'),
                sum(m.time_ns) FILTER (m.statistic = 'single'),
                sum(m.time_ns::HUGEINT * m.time_ns) FILTER (m.statistic = 'single')
            )
        ) AS stddev_ns,
        coalesce(max(m.n), nullif(count(*) FILTER (m.statistic = 'single'), 0)) AS repetitions
    FROM main.measure AS m
    INNER JOIN main.capture AS c ON c.capture_id = m.capture_id
    GROUP BY m.name, m.settings, c.labels
),
pairs AS (
    SELECT c.capture_id, m.name, m.settings, m.mean_ns, m.median_ns, m.stddev_ns, m.repetitions
    FROM measured AS m
    INNER JOIN main.capture AS c
        ON len([k FOR k IN map_keys(m.conditions) IF c.labels[k] IS NOT NULL AND c.labels[k] <> m.conditions[k]]) = 0
),
timed AS (
    SELECT
        /* by t */
        p.name, p.settings, p.mean_ns, p.median_ns, p.stddev_ns, p.repetitions,
        t.rule, t.is_warmup, t.duration_ns, t.projected_ns
    FROM v1._range_span AS t /* inline */
    INNER JOIN pairs AS p ON p.capture_id = t.clock_id AND p.name = t.name
)
SELECT
    /* by d */
    d.rule,
    d.name,
    d.settings,
    any_value(d.repetitions) AS measured_repetitions,
    any_value(d.mean_ns) AS measured_mean_ns,
    any_value(d.median_ns) AS measured_median_ns,
    any_value(d.stddev_ns) AS measured_stddev_ns,
    count(*) FILTER (NOT d.is_warmup) AS instances,
    sum(d.duration_ns) FILTER (NOT d.is_warmup) / count(d.duration_ns) FILTER (NOT d.is_warmup) AS range_avg_ns,
    sum(d.projected_ns) FILTER (NOT d.is_warmup) / count(d.projected_ns) FILTER (NOT d.is_warmup) AS projected_avg_ns,
    100.0 * (range_avg_ns - measured_mean_ns) / nullif(measured_mean_ns, 0) AS range_difference_percent,
    100.0 * (projected_avg_ns - measured_mean_ns) / nullif(measured_mean_ns, 0) AS projected_difference_percent
FROM timed AS d
GROUP BY /* by d */ d.rule, d.name, d.settings;

COMMENT ON VIEW v1.range_measured IS 'Times measured outside of traces beside the ranges of the same name. There are rows for each rule of range membership, which do not add up: select one (WHERE rule = ''process''). Grain: measured name and settings × rule.';
COMMENT ON COLUMN v1.range_measured.rule IS 'How GPU events are assigned to ranges: thread, process or time. There is a row for each rule: select one. The report uses process.';
COMMENT ON COLUMN v1.range_measured.name IS 'Name of the range and of the measured time.';
COMMENT ON COLUMN v1.range_measured.settings IS 'Settings of the measured run, from the other columns of its file.';
COMMENT ON COLUMN v1.range_measured.measured_repetitions IS 'Repetitions behind the measured time; NULL if not recorded. [count]';
COMMENT ON COLUMN v1.range_measured.measured_mean_ns IS 'Measured mean: as recorded, else over single repetitions; NULL if neither was recorded. [ns]';
COMMENT ON COLUMN v1.range_measured.measured_median_ns IS 'Measured median; NULL if not recorded. [ns]';
COMMENT ON COLUMN v1.range_measured.measured_stddev_ns IS 'Measured standard deviation; NULL if not recorded. [ns]';
COMMENT ON COLUMN v1.range_measured.instances IS 'Number of instances of the range, excluding warm-up. [count]';
COMMENT ON COLUMN v1.range_measured.range_avg_ns IS 'Mean duration of the range on the CPU. [ns]';
COMMENT ON COLUMN v1.range_measured.projected_avg_ns IS 'Mean time of the range on the GPU, from first start to last end; NULL without GPU work. [ns]';
COMMENT ON COLUMN v1.range_measured.range_difference_percent IS 'By how much the range on the CPU is longer than the measured mean. [percent]';
COMMENT ON COLUMN v1.range_measured.projected_difference_percent IS 'By how much the range on the GPU is longer than the measured mean. [percent]';
