-- The sheets of gpu_timeline_all_configs: parts of GPU time, averaged over the ranks of each configuration.
-- In:  temp table export_answer (report tracelens-gpu-timeline), sweep_configuration; variable geo_mean: whether the
--      mean is the geometric one. A geometric mean over a zero is 0; zero_ranks gives the number of zeros.
-- Out: temp views All_Data, Pivot_Time_ms, Pivot_Percent and Summary_By_Config; the pivots hold maps, whose keys, in
--      the order of configurations, become columns.
CREATE OR REPLACE TEMP TABLE sweep_part AS
SELECT
    c.place,
    any_value(c.full_config) AS full_config,
    any_value(c.threads_num) AS threads_num,
    any_value(c.thread_config) AS thread_config,
    any_value(c.channels_num) AS channels_num,
    any_value(c.channel_config) AS channel_config,
    count(DISTINCT a.capture_id) AS num_ranks,
    a."type",
    CASE
        WHEN NOT getvariable('geo_mean') THEN avg(a."time ms" ORDER BY a."time ms")
        WHEN count(*) FILTER (a."time ms" = 0) > 0 THEN 0.0
        ELSE exp(avg(ln(nullif(a."time ms", 0)) ORDER BY a."time ms"))
    END AS "time ms",
    CASE
        WHEN NOT getvariable('geo_mean') THEN avg(a."percent" ORDER BY a."percent")
        WHEN count(*) FILTER (a."percent" = 0) > 0 THEN 0.0
        ELSE exp(avg(ln(nullif(a."percent", 0)) ORDER BY a."percent"))
    END AS "percent",
    any_value(c.sweep) AS sweep,
    count(*) FILTER (a."time ms" = 0) AS zero_ranks
FROM temp.export_answer AS a
INNER JOIN temp.sweep_configuration AS c ON c.capture_id = a.capture_id
GROUP BY c.place, a."type";

CREATE OR REPLACE TEMP VIEW "All_Data" AS
SELECT
    full_config, threads_num, thread_config, channels_num, channel_config, num_ranks, "type", "time ms", "percent",
    sweep, zero_ranks
FROM temp.sweep_part
ORDER BY place, "type";
COMMENT ON COLUMN temp."All_Data".full_config IS 'Configuration: threads and channels, and what else tells configurations apart.';
COMMENT ON COLUMN temp."All_Data".threads_num IS 'Label threads, as a number.';
COMMENT ON COLUMN temp."All_Data".thread_config IS 'Label threads.';
COMMENT ON COLUMN temp."All_Data".channels_num IS 'Label channels, as a number.';
COMMENT ON COLUMN temp."All_Data".channel_config IS 'Label channels.';
COMMENT ON COLUMN temp."All_Data".num_ranks IS 'Number of ranks (captures) that the mean is over.';
COMMENT ON COLUMN temp."All_Data"."type" IS 'Part of the GPU time as TraceLens has it: computation_time, exposed_comm_time, exposed_memcpy_time, busy_time (sum of these), idle_time, total_time (busy + idle), total_comm_time and total_memcpy_time (both hidden and exposed). Memsets count as computation here and communication is known by name (nccl, rccl, cross_device_reduce); gpu_timeline counts memsets as copies and knows other collectives, so its times differ a little.';
COMMENT ON COLUMN temp."All_Data"."time ms" IS 'Mean over ranks of the time. [ms]';
COMMENT ON COLUMN temp."All_Data"."percent" IS 'Mean over ranks of the share in their total time. [percent]';
COMMENT ON COLUMN temp."All_Data".sweep IS 'Label sweep.';
COMMENT ON COLUMN temp."All_Data".zero_ranks IS 'How many of the ranks have none of it; a geometric mean is 0 then.';

CREATE OR REPLACE TEMP VIEW "Pivot_Time_ms" AS
SELECT "type", map_from_entries(list((full_config, "time ms") ORDER BY place)) AS configurations
FROM temp.sweep_part
GROUP BY "type"
ORDER BY "type";
COMMENT ON COLUMN temp."Pivot_Time_ms"."type" IS 'Part of the GPU time.';
COMMENT ON COLUMN temp."Pivot_Time_ms".configurations IS 'A column for each configuration: mean over its ranks. [ms]';

CREATE OR REPLACE TEMP VIEW "Pivot_Percent" AS
SELECT "type", map_from_entries(list((full_config, "percent") ORDER BY place)) AS configurations
FROM temp.sweep_part
GROUP BY "type"
ORDER BY "type";
COMMENT ON COLUMN temp."Pivot_Percent"."type" IS 'Part of the GPU time.';
COMMENT ON COLUMN temp."Pivot_Percent".configurations IS 'A column for each configuration: mean over its ranks of the share in the total time. [percent]';

CREATE OR REPLACE TEMP VIEW "Summary_By_Config" AS
SELECT
    any_value(full_config) AS full_config,
    any_value(threads_num) AS threads_num,
    any_value(channels_num) AS channels_num,
    any_value(num_ranks) AS num_ranks,
    max("time ms") FILTER ("type" = 'computation_time') AS computation_time_ms,
    max("time ms") FILTER ("type" = 'exposed_comm_time') AS exposed_comm_time_ms,
    max("time ms") FILTER ("type" = 'busy_time') AS busy_time_ms,
    max("time ms") FILTER ("type" = 'idle_time') AS idle_time_ms,
    max("time ms") FILTER ("type" = 'total_time') AS total_time_ms
FROM temp.sweep_part
GROUP BY place
ORDER BY place;
COMMENT ON COLUMN temp."Summary_By_Config".full_config IS 'Configuration.';
COMMENT ON COLUMN temp."Summary_By_Config".threads_num IS 'Label threads, as a number.';
COMMENT ON COLUMN temp."Summary_By_Config".channels_num IS 'Label channels, as a number.';
COMMENT ON COLUMN temp."Summary_By_Config".num_ranks IS 'Number of ranks (captures) that the mean is over.';
COMMENT ON COLUMN temp."Summary_By_Config".computation_time_ms IS 'Mean over ranks of the time in which a kernel computes. [ms]';
COMMENT ON COLUMN temp."Summary_By_Config".exposed_comm_time_ms IS 'Mean over ranks of the time in which a collective runs and nothing computes. [ms]';
COMMENT ON COLUMN temp."Summary_By_Config".busy_time_ms IS 'Mean over ranks of the time in which anything runs. [ms]';
COMMENT ON COLUMN temp."Summary_By_Config".idle_time_ms IS 'Mean over ranks of the time in which nothing runs. [ms]';
COMMENT ON COLUMN temp."Summary_By_Config".total_time_ms IS 'Mean over ranks of the time from the first start to the last end. [ms]';
