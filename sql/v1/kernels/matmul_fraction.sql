-- How much of the kernel time is matrix multiplication, and what is the rest?
-- Grain: class. Durations are summed, so concurrent kernels count fully. Matmul always has a row if there are kernels:
-- "no kernel is a matmul" is an answer. Times are summed by name first, because there are few names and classifying
-- them is expensive; calls with recorded collective arguments are summed separately, because these arguments make them
-- collectives.
CREATE VIEW v1.matmul_fraction AS
WITH names AS (
    SELECT
        /* by e */
        e.name,
        count(*) AS calls,
        sum(e.duration_ns) AS total_ns,
        count(e.collective) AS argued_calls,
        sum(e.duration_ns) FILTER (e.collective IS NOT NULL) AS argued_ns
    FROM v1._unclassed_event AS e /* join e */
    WHERE e.kind = 'kernel' /* filter e */
    GROUP BY /* by e */ e.name
),
classes AS (
    SELECT
        /* by s */
        n.class /* matmul */ AS class,
        CASE WHEN n.rule_source <> 'user' THEN 'collective' ELSE n.class /* matmul */ END AS argued_class,
        s.calls,
        s.total_ns,
        s.argued_calls,
        coalesce(s.argued_ns, 0) AS argued_ns
    FROM names AS s
    LEFT JOIN v1._kernel_class AS n ON n.name = s.name
),
shares AS (
    SELECT /* by */ class, calls - argued_calls AS calls, total_ns - argued_ns AS total_ns
    FROM classes
    WHERE calls > argued_calls
    UNION ALL
    SELECT /* by */ argued_class AS class, argued_calls AS calls, argued_ns AS total_ns
    FROM classes
    WHERE argued_calls > 0
    UNION ALL
    SELECT /* by */ 'matmul' AS class, 0 AS calls, 0 AS total_ns
    FROM classes
)
SELECT
    /* by */
    class,
    sum(calls)::BIGINT AS calls,
    sum(total_ns)::BIGINT AS total_ns,
    100.0 * sum(total_ns) / nullif(sum(sum(total_ns)) OVER (/* partition */), 0) AS share_percent
FROM shares
GROUP BY /* by */ class;

COMMENT ON VIEW v1.matmul_fraction IS 'Share of total kernel time by class (matmul and others). Grain: class.';
COMMENT ON COLUMN v1.matmul_fraction.class IS 'Class of the kernels: matmul, attention, collective …';
COMMENT ON COLUMN v1.matmul_fraction.calls IS 'Number of calls. [count]';
COMMENT ON COLUMN v1.matmul_fraction.total_ns IS 'Sum of durations. [ns]';
COMMENT ON COLUMN v1.matmul_fraction.share_percent IS 'Share of the total time of all kernels in the answer (with --by: in the group). [percent]';
