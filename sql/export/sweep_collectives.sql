-- The sheet of nccl_master_all_configs: latency, bandwidth and skew of each collective and size in each configuration.
-- In:  temp table export_answer (report collectives), sweep_configuration.
-- Out: temp view NCCL_Data. Latency is the shortest duration over the ranks of a call, in µs as in the original, which
--      labels it ms. Only calls matched over ranks count, because waiting and transfer cannot be separated in others.
--      An operation is a collective of one size, type and group size: operation_id is the same in all configurations,
--      and two collectives of one size do not share it.
CREATE OR REPLACE TEMP TABLE sweep_call AS
WITH members AS (
    SELECT
        m.collective_id,
        min(m.capture_id) AS capture_id,
        max(e.message_in_elements) AS message_in_elements
    FROM v1._collective_member AS m
    INNER JOIN main.kernel_event AS e ON e.capture_id = m.capture_id AND e.event_id = m.event_id
    GROUP BY m.collective_id
),

calls AS (
    SELECT
        c.place, c.full_config, c.threads_num, c.thread_config, c.channels_num, c.channel_config,
        p.path,
        m.message_in_elements,
        a.collective, coalesce(a.recorded_as, a.collective) AS collective_name,
        a.dtype, a.message_bytes, coalesce(a.group_size, a.ranks) AS group_size, a.group_name,
        a.latency_ns, a.skew_start_ns, a.skew_end_ns, a.algorithm_gbps, a.bus_gbps
    FROM temp.export_answer AS a
    INNER JOIN members AS m ON m.collective_id = a.collective_id
    INNER JOIN temp.sweep_configuration AS c ON c.capture_id = m.capture_id
    INNER JOIN main.capture AS p ON p.capture_id = m.capture_id
    WHERE a.ranks > 1 OR a.group_size = 1
)

SELECT
    dense_rank() OVER (
        ORDER BY message_bytes NULLS LAST, collective_name, dtype NULLS LAST, group_size, message_in_elements NULLS LAST
    ) AS operation,
    place, full_config, threads_num, thread_config, channels_num, channel_config, path, message_in_elements,
    collective, collective_name, dtype, message_bytes, group_size, group_name, latency_ns, skew_start_ns, skew_end_ns,
    algorithm_gbps, bus_gbps
FROM calls;

CREATE OR REPLACE TEMP VIEW "NCCL_Data" AS
SELECT
    format('OP_{:02d}', operation) AS operation_id,
    CASE
        WHEN message_bytes < 10000 THEN format('tiny_{:.3f}KB', message_bytes / 1e3)
        WHEN message_bytes < 100000000 THEN format('medium_{:.2f}MB', message_bytes / 1e6)
        ELSE format('large_{:.2f}MB', message_bytes / 1e6)
    END AS operation_name,
    message_bytes / 1e6 AS "Full msg size (MB)",
    message_in_elements AS "In msg nelems",
    threads_num, thread_config, channels_num, channel_config, full_config,
    collective_name AS "Collective name",
    dtype,
    group_size AS "Group size",
    count(*) AS "count",
    sum(latency_ns) / count(*) / 1e3 AS comm_latency_mean,
    median(latency_ns) / 1e3 AS comm_latency_median,
    min(latency_ns) / 1e3 AS comm_latency_min,
    max(latency_ns) / 1e3 AS comm_latency_max,
    sum(latency_ns) / 1e6 AS "Total comm latency (ms)",
    avg(algorithm_gbps ORDER BY algorithm_gbps) AS "algo bw (GB/s)_mean",
    median(algorithm_gbps) AS "algo bw (GB/s)_median",
    min(algorithm_gbps) AS "algo bw (GB/s)_min",
    max(algorithm_gbps) AS "algo bw (GB/s)_max",
    avg(bus_gbps ORDER BY bus_gbps) AS "bus bw (GB/s)_mean",
    median(bus_gbps) AS "bus bw (GB/s)_median",
    min(bus_gbps) AS "bus bw (GB/s)_min",
    max(bus_gbps) AS "bus bw (GB/s)_max",
    sum(skew_start_ns) / nullif(count(skew_start_ns), 0) / 1e3 AS "skew in start time_mean",
    median(skew_start_ns) / 1e3 AS "skew in start time_median",
    min(skew_start_ns) / 1e3 AS "skew in start time_min",
    max(skew_start_ns) / 1e3 AS "skew in start time_max",
    sum(skew_end_ns) / nullif(count(skew_end_ns), 0) / 1e3 AS "skew in end time_mean",
    median(skew_end_ns) / 1e3 AS "skew in end time_median",
    min(skew_end_ns) / 1e3 AS "skew in end time_min",
    max(skew_end_ns) / 1e3 AS "skew in end time_max",
    string_agg(DISTINCT group_name, ';' ORDER BY group_name) AS "Process Group Name",
    min(path) AS source_file,
    message_bytes
FROM temp.sweep_call
GROUP BY
    operation, message_bytes, message_in_elements, place, threads_num, thread_config, channels_num, channel_config,
    full_config, collective_name, dtype, group_size
ORDER BY operation, place;
COMMENT ON COLUMN temp."NCCL_Data".operation_id IS 'Operation: a collective of one size, type and group size; the same in all configurations.';
COMMENT ON COLUMN temp."NCCL_Data".operation_name IS 'Its size in words.';
COMMENT ON COLUMN temp."NCCL_Data"."Full msg size (MB)" IS 'Whole message: what an all-gather gives, what goes into the others; of 1e6 bytes. [MB]';
COMMENT ON COLUMN temp."NCCL_Data"."In msg nelems" IS 'Elements that go in on a rank, the most of the ranks.';
COMMENT ON COLUMN temp."NCCL_Data".threads_num IS 'Label threads, as a number.';
COMMENT ON COLUMN temp."NCCL_Data".channels_num IS 'Label channels, as a number.';
COMMENT ON COLUMN temp."NCCL_Data".full_config IS 'Configuration.';
COMMENT ON COLUMN temp."NCCL_Data"."Collective name" IS 'Collective as recorded.';
COMMENT ON COLUMN temp."NCCL_Data"."Group size" IS 'Ranks in the process group; those matched, where it was not recorded.';
COMMENT ON COLUMN temp."NCCL_Data"."count" IS 'Number of calls matched over ranks.';
COMMENT ON COLUMN temp."NCCL_Data".comm_latency_mean IS 'Mean over calls of the shortest duration over ranks. [µs]';
COMMENT ON COLUMN temp."NCCL_Data".comm_latency_median IS 'Median over calls. [µs]';
COMMENT ON COLUMN temp."NCCL_Data".comm_latency_min IS 'Smallest over calls. [µs]';
COMMENT ON COLUMN temp."NCCL_Data".comm_latency_max IS 'Largest over calls. [µs]';
COMMENT ON COLUMN temp."NCCL_Data"."Total comm latency (ms)" IS 'Sum over calls. [ms]';
COMMENT ON COLUMN temp."NCCL_Data"."algo bw (GB/s)_mean" IS 'Mean over calls of message over latency. [GB/s]';
COMMENT ON COLUMN temp."NCCL_Data"."bus bw (GB/s)_mean" IS 'Mean over calls of that times the factor of nccl-tests. [GB/s]';
COMMENT ON COLUMN temp."NCCL_Data"."skew in start time_mean" IS 'Mean over calls of last start less first start over ranks, on aligned clocks. [µs]';
COMMENT ON COLUMN temp."NCCL_Data"."skew in end time_mean" IS 'Mean over calls of last end less first end over ranks, on aligned clocks. [µs]';
COMMENT ON COLUMN temp."NCCL_Data"."Process Group Name" IS 'Process groups of the calls; NULL if not recorded.';
COMMENT ON COLUMN temp."NCCL_Data".source_file IS 'The first of the traces.';
COMMENT ON COLUMN temp."NCCL_Data".message_bytes IS 'Whole message. [bytes]';
