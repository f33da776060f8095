-- Where does GPU time go: computation, exposed collectives, exposed copies, idle?
-- Grain: capture × device, from the first start to the last end of its GPU events. Times are unions of intervals;
-- computation counts first, then collectives, then copies, each without the time covered by the previous ones. So
-- computation + exposed collectives + exposed copies = busy, and busy + idle = total, exactly. Gaps in which unrecorded
-- graph replays may have run are neither (unrecorded_ns). Method: see v1._gpu_time.
CREATE VIEW v1.gpu_timeline AS
SELECT
    /* by */
    /* grain */
    clock_id AS capture_id, any_value(c.rank) AS rank, any_value(c.labels) AS labels, gpu_id AS device_id,
    /* end grain */
    sum(union_1_ns)::BIGINT AS computation_ns,
    100.0 * sum(union_1_ns) / nullif(sum(total_ns), 0) AS computation_percent,
    sum(union_2_ns - union_1_ns)::BIGINT AS exposed_collective_ns,
    100.0 * sum(union_2_ns - union_1_ns) / nullif(sum(total_ns), 0) AS exposed_collective_percent,
    sum(union_3_ns - union_2_ns)::BIGINT AS exposed_copy_ns,
    100.0 * sum(union_3_ns - union_2_ns) / nullif(sum(total_ns), 0) AS exposed_copy_percent,
    sum(union_3_ns)::BIGINT AS busy_ns,
    100.0 * sum(union_3_ns) / nullif(sum(total_ns), 0) AS busy_percent,
    sum(total_ns - union_3_ns)::BIGINT AS idle_ns,
    100.0 * sum(total_ns - union_3_ns) / nullif(sum(total_ns), 0) AS idle_percent,
    sum(total_ns)::BIGINT AS total_ns,
    sum(unrecorded_ns)::BIGINT AS unrecorded_ns,
    count(*) AS gpus
FROM v1._gpu_time AS u /* inline */
/* grain */ LEFT JOIN main.capture AS c ON c.capture_id = clock_id /* end grain */
GROUP BY ALL;

COMMENT ON VIEW v1.gpu_timeline IS 'Computation, exposed collectives, exposed copies and idle time of each GPU. A --by group sums over its GPUs; percentages refer to that sum. Grain: capture × device.';
COMMENT ON COLUMN v1.gpu_timeline.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN v1.gpu_timeline.rank IS 'Rank of the capture; NULL if unknown. [-]';
COMMENT ON COLUMN v1.gpu_timeline.labels IS 'Labels of the capture: sweep, threads, channels and others.';
COMMENT ON COLUMN v1.gpu_timeline.device_id IS 'Device number within the capture. [-]';
COMMENT ON COLUMN v1.gpu_timeline.computation_ns IS 'Time during which a kernel other than a collective, or a graph replay, runs. [ns]';
COMMENT ON COLUMN v1.gpu_timeline.computation_percent IS 'Share of the total. [percent]';
COMMENT ON COLUMN v1.gpu_timeline.exposed_collective_ns IS 'Time during which a collective runs and no computation does. [ns]';
COMMENT ON COLUMN v1.gpu_timeline.exposed_collective_percent IS 'Share of the total. [percent]';
COMMENT ON COLUMN v1.gpu_timeline.exposed_copy_ns IS 'Time during which a copy or memset runs, and neither computation nor a collective does. [ns]';
COMMENT ON COLUMN v1.gpu_timeline.exposed_copy_percent IS 'Share of the total. [percent]';
COMMENT ON COLUMN v1.gpu_timeline.busy_ns IS 'Time during which anything runs. [ns]';
COMMENT ON COLUMN v1.gpu_timeline.busy_percent IS 'Share of the total. [percent]';
COMMENT ON COLUMN v1.gpu_timeline.idle_ns IS 'Time during which nothing runs on the device. Where a report chooses or groups its events (--class, --range, --skip-warmup, --by step or range): the part of it that ends with an event of the row, from the first of them; other work is not idle time. [ns]';
COMMENT ON COLUMN v1.gpu_timeline.idle_percent IS 'Share of the total. [percent]';
COMMENT ON COLUMN v1.gpu_timeline.unrecorded_ns IS 'Time between events in which graph replays without recorded kernels may have run; neither busy nor idle, and not part of the total. [ns]';
COMMENT ON COLUMN v1.gpu_timeline.gpus IS 'Number of GPUs (devices of captures) summed in this row; 1 without --by. [count]';
COMMENT ON COLUMN v1.gpu_timeline.total_ns IS 'From the first start to the last end of the device''s events, without unrecorded_ns (with --by: summed over captures and devices); busy_ns + idle_ns, so without the time of other work where a report chooses or groups events. [ns]';
