-- How long does a collective take at this size, and how long did ranks wait for each other in it?
-- Grain: run × collective × shape, over ranges comm|COLLECTIVE|elements=…. The k-th range of a name on each rank of a
-- run is one call. The time of a rank includes waiting for the last one, so the shortest time over ranks is the
-- transfer time, and the difference to the longest is waiting. Captures without a run (label run) stand alone, and
-- their waiting time is unknown.
CREATE VIEW v1.collective_samples AS
WITH ranges AS (
    SELECT
        /* by r */ r.capture_id, r.annotation_id, r.start_ns, r.labels, r.device_id,
        coalesce(r.labels['run'], concat('capture ', r.capture_id)) AS run_label,
        r.operator AS collective, coalesce(r.labels['dtype'], r.dtype) AS dtype,
        r.shape, list_sort(map_entries(r.shape)) AS shape_key,
        r.busy_ns, a.duration_ns
    FROM v1._operator_iteration AS r /* join r */
    INNER JOIN main.annotation AS a ON a.capture_id = r.capture_id AND a.annotation_id = r.annotation_id
    WHERE r.pass = 'comm' /* filter r */
),
numbered AS (
    SELECT
        /* by g */ g.capture_id, g.labels, g.device_id, g.run_label, g.collective, g.dtype, g.shape, g.shape_key,
        g.busy_ns, g.duration_ns,
        row_number() OVER (
            PARTITION BY g.capture_id, g.collective, g.shape_key ORDER BY g.start_ns, g.annotation_id
        ) AS call_number
    FROM ranges AS g
),
calls AS (
    SELECT
        /* by n */ n.run_label, n.collective, n.shape_key, n.call_number,
        min(n.capture_id) AS capture_id,
        min(n.device_id) AS device_id,
        min(n.dtype) AS dtype,
        arg_min(n.shape, n.capture_id) AS shape,
        arg_min(n.labels, n.capture_id) AS labels,
        count(*) AS ranks,
        count(n.busy_ns) = count(*) AS is_gpu,
        CASE WHEN count(n.busy_ns) = count(*) THEN min(n.busy_ns) ELSE min(n.duration_ns) END AS shortest_ns,
        CASE WHEN count(n.busy_ns) = count(*) THEN max(n.busy_ns) ELSE max(n.duration_ns) END AS longest_ns
    FROM numbered AS n
    GROUP BY /* by n */ n.run_label, n.collective, n.shape_key, n.call_number
),
samples AS (
    SELECT
        /* by c */ c.run_label, c.collective,
        min(c.dtype) AS dtype,
        arg_min(c.shape, c.call_number) AS shape,
        arg_min(c.labels, c.call_number) AS labels,
        min(c.capture_id) AS capture_id,
        min(c.device_id) AS device_id,
        min(c.ranks) AS ranks,
        CASE WHEN bool_and(c.is_gpu) THEN 'gpu' ELSE 'host' END AS clock,
        count(*) AS n,
        median(c.shortest_ns) AS latency_median_ns,
        min(c.shortest_ns) AS latency_min_ns,
        max(c.shortest_ns) AS latency_max_ns,
        CASE WHEN min(c.ranks) > 1 THEN median(c.longest_ns - c.shortest_ns) END AS wait_median_ns,
        CASE WHEN min(c.ranks) > 1 THEN max(c.longest_ns - c.shortest_ns) END AS wait_max_ns
    FROM calls AS c
    GROUP BY /* by c */ c.run_label, c.collective, c.shape_key
),
sized AS (
    SELECT
        /* by s */ s.run_label, s.labels, s.capture_id, s.device_id, s.collective, s.dtype, s.shape, s.ranks, s.clock, s.n,
        s.latency_median_ns, s.latency_min_ns, s.latency_max_ns, s.wait_median_ns, s.wait_max_ns,
        s.shape['elements'] * CASE s.dtype WHEN 'fp16' THEN 2 WHEN 'bf16' THEN 2 WHEN 'fp32' THEN 4 WHEN 'fp64' THEN 8 END
        * CASE WHEN s.collective IN ('allgather', 'gather') THEN s.ranks ELSE 1 END AS message_bytes
    FROM samples AS s
)
SELECT
    /* by z */ z.run_label, z.labels,
    (SELECT min(d.name) FROM main.device AS d WHERE d.capture_id = z.capture_id AND d.device_id = z.device_id) AS gpu,
    z.collective, z.dtype, z.shape, z.ranks, z.clock, z.n,
    z.latency_median_ns, z.latency_min_ns, z.latency_max_ns, z.wait_median_ns, z.wait_max_ns,
    z.message_bytes,
    z.message_bytes / nullif(z.latency_median_ns, 0) AS algorithm_gbps,
    z.message_bytes / nullif(z.latency_median_ns, 0) * CASE z.collective
        WHEN 'allreduce' THEN 2.0 * (z.ranks - 1) / z.ranks
        WHEN 'allgather' THEN 1.0 * (z.ranks - 1) / z.ranks
        WHEN 'reducescatter' THEN 1.0 * (z.ranks - 1) / z.ranks
        WHEN 'alltoall' THEN 1.0 * (z.ranks - 1) / z.ranks
        WHEN 'gather' THEN 1.0 * (z.ranks - 1) / z.ranks
        WHEN 'scatter' THEN 1.0 * (z.ranks - 1) / z.ranks
        WHEN 'broadcast' THEN 1.0
        WHEN 'p2p' THEN 1.0
    END AS bus_gbps
FROM sized AS z;

COMMENT ON VIEW v1.collective_samples IS 'Sampled collectives, with transfer and waiting time separated. Grain: run × collective × shape.';
COMMENT ON COLUMN v1.collective_samples.run_label IS 'Value of the label run, shared by the captures of all ranks of a run; else the capture.';
COMMENT ON COLUMN v1.collective_samples.labels IS 'Labels of the first capture.';
COMMENT ON COLUMN v1.collective_samples.gpu IS 'GPU name as recorded; NULL without GPU activity.';
COMMENT ON COLUMN v1.collective_samples.collective IS 'allreduce, allgather, reducescatter, alltoall, broadcast, gather, scatter, p2p or another name, from the text of the range.';
COMMENT ON COLUMN v1.collective_samples.dtype IS 'Element type: label dtype, else from the launched work.';
COMMENT ON COLUMN v1.collective_samples.shape IS 'Map from shape parameter to value; elements is the number of elements that each rank contributes. [-]';
COMMENT ON COLUMN v1.collective_samples.ranks IS 'Number of ranks whose captures contain the call. [count]';
COMMENT ON COLUMN v1.collective_samples.clock IS 'gpu: times are busy times of the GPU; host: times of the range on the host, because no GPU activity was captured.';
COMMENT ON COLUMN v1.collective_samples.n IS 'Calls. [count]';
COMMENT ON COLUMN v1.collective_samples.latency_median_ns IS 'Median over calls of the transfer time (the shortest time over ranks). [ns]';
COMMENT ON COLUMN v1.collective_samples.latency_min_ns IS 'Shortest transfer time of a call. [ns]';
COMMENT ON COLUMN v1.collective_samples.latency_max_ns IS 'Longest transfer time of a call. [ns]';
COMMENT ON COLUMN v1.collective_samples.wait_median_ns IS 'Median over calls of the waiting time (longest minus shortest time over ranks); NULL for one rank. [ns]';
COMMENT ON COLUMN v1.collective_samples.wait_max_ns IS 'Longest waiting time in a call; NULL for one rank. [ns]';
COMMENT ON COLUMN v1.collective_samples.message_bytes IS 'Message size as nccl-tests count it: all gathered bytes of an allgather or gather, else the bytes that each rank contributes. [bytes]';
COMMENT ON COLUMN v1.collective_samples.algorithm_gbps IS 'Message size / median transfer time. [GB/s]';
COMMENT ON COLUMN v1.collective_samples.bus_gbps IS 'Algorithm bandwidth times the nccl-tests factor: 2(n-1)/n for allreduce, (n-1)/n for allgather, reducescatter, alltoall, gather and scatter, 1 for broadcast and p2p. [GB/s]';
