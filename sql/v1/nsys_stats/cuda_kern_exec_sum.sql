-- The report cuda_kern_exec_sum of nsys stats, with its columns, units and rounding.
-- Grain: launching thread × device × API call × kernel name, over kernels whose launch was recorded. v1.launch_latency
-- has the same per kernel. The four times of a call become rows of one step, so that their statistics are written once.
-- The queue time is NULL if the kernel started before the call returned, and its deviation is then 0, as in nsys stats.
CREATE VIEW v1.cuda_kern_exec_sum AS
WITH calls AS (
    SELECT
        /* by e */
        l.process_id,
        l.thread_id,
        e.device_id AS gpu_id,
        l.name AS api_name,
        e.name AS kernel_name,
        unnest(['T', 'A', 'Q', 'K']) AS part,
        unnest([
            greatest(l.start_ns + l.duration_ns, e.end_ns) - l.start_ns,
            l.duration_ns,
            CASE WHEN e.start_ns >= l.start_ns + l.duration_ns THEN e.start_ns - l.start_ns - l.duration_ns END,
            e.duration_ns
        ]) AS duration_ns
    FROM v1._gpu_event AS e /* join e */
    INNER JOIN v1._timed_launch AS l ON l.capture_id = e.capture_id AND l.launch_id = e.launch_id
    WHERE e.kind = 'kernel' /* filter e */
),
sums AS (
    SELECT
        /* by */
        process_id, thread_id, gpu_id, api_name, kernel_name, part,
        count(*) AS calls,
        v1._nsys_summary(count(duration_ns), duration_ns) AS stats
    FROM calls
    GROUP BY ALL
)
SELECT
    /* by s */
    s.process_id AS "PID",
    s.thread_id AS "TID",
    s.gpu_id AS "DevId",
    any_value(s.calls) AS "Count",
    any_value(s.stats.instances) FILTER (s.part = 'Q') AS "QCount",
    any_value(s.stats.mean) FILTER (s.part = 'T') AS "TAvg (ns)",
    any_value(s.stats.median) FILTER (s.part = 'T') AS "TMed (ns)",
    any_value(s.stats.least) FILTER (s.part = 'T') AS "TMin (ns)",
    any_value(s.stats.most) FILTER (s.part = 'T') AS "TMax (ns)",
    any_value(coalesce(s.stats.stddev, 0.0)) FILTER (s.part = 'T') AS "TStdDev (ns)",
    any_value(s.stats.mean) FILTER (s.part = 'A') AS "AAvg (ns)",
    any_value(s.stats.median) FILTER (s.part = 'A') AS "AMed (ns)",
    any_value(s.stats.least) FILTER (s.part = 'A') AS "AMin (ns)",
    any_value(s.stats.most) FILTER (s.part = 'A') AS "AMax (ns)",
    any_value(coalesce(s.stats.stddev, 0.0)) FILTER (s.part = 'A') AS "AStdDev (ns)",
    any_value(s.stats.mean) FILTER (s.part = 'Q') AS "QAvg (ns)",
    any_value(s.stats.median) FILTER (s.part = 'Q') AS "QMed (ns)",
    any_value(s.stats.least) FILTER (s.part = 'Q') AS "QMin (ns)",
    any_value(s.stats.most) FILTER (s.part = 'Q') AS "QMax (ns)",
    any_value(coalesce(s.stats.stddev, 0.0)) FILTER (s.part = 'Q') AS "QStdDev (ns)",
    any_value(s.stats.mean) FILTER (s.part = 'K') AS "KAvg (ns)",
    any_value(s.stats.median) FILTER (s.part = 'K') AS "KMed (ns)",
    any_value(s.stats.least) FILTER (s.part = 'K') AS "KMin (ns)",
    any_value(s.stats.most) FILTER (s.part = 'K') AS "KMax (ns)",
    any_value(coalesce(s.stats.stddev, 0.0)) FILTER (s.part = 'K') AS "KStdDev (ns)",
    s.api_name AS "API Name",
    s.kernel_name AS "Kernel Name"
FROM sums AS s
GROUP BY /* by s */ s.process_id, s.thread_id, s.gpu_id, s.api_name, s.kernel_name;

COMMENT ON VIEW v1.cuda_kern_exec_sum IS 'Call, queue and kernel times by API call and kernel name, in the format of nsys stats. Grain: launching thread × device × API call × kernel name.';
COMMENT ON COLUMN v1.cuda_kern_exec_sum."PID" IS 'Process that made the launch. [-]';
COMMENT ON COLUMN v1.cuda_kern_exec_sum."TID" IS 'Thread that made the launch. [-]';
COMMENT ON COLUMN v1.cuda_kern_exec_sum."DevId" IS 'Device number within the capture. [-]';
COMMENT ON COLUMN v1.cuda_kern_exec_sum."Count" IS 'Number of calls. [count]';
COMMENT ON COLUMN v1.cuda_kern_exec_sum."QCount" IS 'Number of calls whose kernel started after the call had returned. [count]';
COMMENT ON COLUMN v1.cuda_kern_exec_sum."TAvg (ns)" IS 'Mean time from the start of the call to the end of the kernel. [ns]';
COMMENT ON COLUMN v1.cuda_kern_exec_sum."TMed (ns)" IS 'Median time from the start of the call to the end of the kernel. [ns]';
COMMENT ON COLUMN v1.cuda_kern_exec_sum."TMin (ns)" IS 'Shortest time from the start of the call to the end of the kernel. [ns]';
COMMENT ON COLUMN v1.cuda_kern_exec_sum."TMax (ns)" IS 'Longest time from the start of the call to the end of the kernel. [ns]';
COMMENT ON COLUMN v1.cuda_kern_exec_sum."TStdDev (ns)" IS 'Sample standard deviation of the time from the start of the call to the end of the kernel. [ns]';
COMMENT ON COLUMN v1.cuda_kern_exec_sum."AAvg (ns)" IS 'Mean time of the API call. [ns]';
COMMENT ON COLUMN v1.cuda_kern_exec_sum."AMed (ns)" IS 'Median time of the API call. [ns]';
COMMENT ON COLUMN v1.cuda_kern_exec_sum."AMin (ns)" IS 'Shortest time of the API call. [ns]';
COMMENT ON COLUMN v1.cuda_kern_exec_sum."AMax (ns)" IS 'Longest time of the API call. [ns]';
COMMENT ON COLUMN v1.cuda_kern_exec_sum."AStdDev (ns)" IS 'Sample standard deviation of the time of the API call. [ns]';
COMMENT ON COLUMN v1.cuda_kern_exec_sum."QAvg (ns)" IS 'Mean time from the end of the call to the start of the kernel, over kernels that start after the call returned. [ns]';
COMMENT ON COLUMN v1.cuda_kern_exec_sum."QMed (ns)" IS 'Median time from the end of the call to the start of the kernel, over kernels that start after the call returned. [ns]';
COMMENT ON COLUMN v1.cuda_kern_exec_sum."QMin (ns)" IS 'Shortest time from the end of the call to the start of the kernel, over kernels that start after the call returned. [ns]';
COMMENT ON COLUMN v1.cuda_kern_exec_sum."QMax (ns)" IS 'Longest time from the end of the call to the start of the kernel, over kernels that start after the call returned. [ns]';
COMMENT ON COLUMN v1.cuda_kern_exec_sum."QStdDev (ns)" IS 'Sample standard deviation of the time from the end of the call to the start of the kernel, over kernels that start after the call returned. [ns]';
COMMENT ON COLUMN v1.cuda_kern_exec_sum."KAvg (ns)" IS 'Mean time of the kernel. [ns]';
COMMENT ON COLUMN v1.cuda_kern_exec_sum."KMed (ns)" IS 'Median time of the kernel. [ns]';
COMMENT ON COLUMN v1.cuda_kern_exec_sum."KMin (ns)" IS 'Shortest time of the kernel. [ns]';
COMMENT ON COLUMN v1.cuda_kern_exec_sum."KMax (ns)" IS 'Longest time of the kernel. [ns]';
COMMENT ON COLUMN v1.cuda_kern_exec_sum."KStdDev (ns)" IS 'Sample standard deviation of the time of the kernel. [ns]';
COMMENT ON COLUMN v1.cuda_kern_exec_sum."API Name" IS 'API call that launched the kernel.';
COMMENT ON COLUMN v1.cuda_kern_exec_sum."Kernel Name" IS 'Kernel name as recorded.';
