-- Who allocated the GPU memory, and how much of it is in use at the peak?
-- Grain: capture × device × allocating operator × module × line. Operator and module are those on the allocating thread.
-- A memory snapshot has the stack of each allocation instead. What was in use at the peak and was not allocated in the
-- trace has the origin "before the trace", by the allocator's own total.
CREATE VIEW v1._memory_owner AS
WITH blocks AS (
    SELECT
        memory.capture_id, memory.device_id,
        CASE
            WHEN coalesce(o.name, s.op_name) IS NOT NULL THEN 'operator'
            WHEN memory.frame_id IS NOT NULL THEN 'stack'
            ELSE 'no operator'
        END AS origin,
        coalesce(o.name, s.op_name) AS op_name,
        f.module_path,
        s.source,
        memory.bytes,
        memory.place <= p.peak_place AND coalesce(memory.next_place > p.peak_place, true) AS is_live
    FROM v1._device_memory AS memory
    INNER JOIN v1._memory_peak AS p /* inline */ ON p.capture_id = memory.capture_id AND p.device_id = memory.device_id
    LEFT JOIN v1._allocating_op AS a ON a.capture_id = memory.capture_id AND a.memory_event_id = memory.memory_event_id
    LEFT JOIN main.op AS o ON o.capture_id = a.capture_id AND o.op_id = a.op_id
    LEFT JOIN v1._op_frame AS g ON g.capture_id = a.capture_id AND g.op_id = a.op_id
    LEFT JOIN main.frame AS f ON f.capture_id = g.capture_id AND f.frame_id = g.frame_id
    LEFT JOIN v1._allocation_stack AS s ON s.capture_id = memory.capture_id AND s.leaf_id = memory.frame_id
    WHERE memory.bytes > 0 /* filter memory */
),
sums AS (
    SELECT
        b.capture_id, b.device_id, b.origin, b.op_name, b.module_path, b.source,
        coalesce(sum(b.bytes) FILTER (b.is_live), 0) AS live_bytes,
        count(*) FILTER (b.is_live) AS live_blocks,
        count(*) AS allocations,
        sum(b.bytes) AS allocated_bytes,
        max(b.bytes) AS largest_bytes
    FROM blocks AS b
    GROUP BY b.capture_id, b.device_id, b.origin, b.op_name, b.module_path, b.source
),
older AS (
    SELECT p.capture_id, p.device_id, p.peak_bytes - coalesce(sum(s.live_bytes), 0) AS live_bytes
    FROM v1._memory_peak AS p /* inline */
    LEFT JOIN sums AS s ON s.capture_id = p.capture_id AND s.device_id = p.device_id
    GROUP BY p.capture_id, p.device_id, p.peak_bytes
),
together AS (
    SELECT
        s.capture_id, s.device_id, s.origin, s.op_name, s.module_path, s.source, s.live_bytes, s.live_blocks,
        s.allocations, s.allocated_bytes, s.largest_bytes
    FROM sums AS s
    UNION ALL
    SELECT
        r.capture_id, r.device_id, 'before the trace' AS origin, NULL AS op_name, NULL AS module_path, NULL AS source, r.live_bytes, NULL AS live_blocks,
        0 AS allocations, NULL AS allocated_bytes, NULL AS largest_bytes
    FROM older AS r
    WHERE r.live_bytes IS NOT NULL
)
SELECT
    t.capture_id, c.rank, c.labels, t.device_id,
    t.origin,
    t.op_name,
    t.module_path,
    t.source,
    CASE WHEN p.peak_bytes IS NOT NULL THEN t.live_bytes::BIGINT END AS live_bytes_at_peak,
    100.0 * t.live_bytes / nullif(p.peak_bytes, 0) AS peak_percent,
    CASE WHEN p.peak_bytes IS NOT NULL THEN t.live_blocks END AS live_blocks_at_peak,
    t.allocations,
    t.allocated_bytes::BIGINT AS allocated_bytes,
    t.largest_bytes
FROM together AS t
INNER JOIN v1._memory_peak AS p /* inline */ ON p.capture_id = t.capture_id AND p.device_id = t.device_id
LEFT JOIN main.capture AS c ON c.capture_id = t.capture_id;
