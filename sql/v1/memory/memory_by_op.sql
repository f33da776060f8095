-- Which operators hold the memory at its peak?
-- Grain: capture × device × allocating operator. A block belongs to the innermost operator running on the allocating
-- thread. Memory in use at the peak that was not allocated in the trace is the row "before the trace", computed from
-- the allocator's own total, so rows add up to peak_bytes.
CREATE VIEW v1.memory_by_op AS
WITH blocks AS (
    SELECT
        memory.capture_id, memory.device_id,
        CASE WHEN o.op_id IS NULL THEN 'no operator' ELSE 'operator' END AS origin,
        o.name AS op_name,
        memory.bytes,
        memory.place <= p.peak_place AND coalesce(memory.next_place > p.peak_place, true) AS is_live
    FROM v1._device_memory AS memory
    INNER JOIN v1._memory_peak AS p /* inline */ ON p.capture_id = memory.capture_id AND p.device_id = memory.device_id
    LEFT JOIN v1._allocating_op AS a ON a.capture_id = memory.capture_id AND a.memory_event_id = memory.memory_event_id
    LEFT JOIN main.op AS o ON o.capture_id = a.capture_id AND o.op_id = a.op_id
    WHERE memory.bytes > 0 /* filter memory */
),
sums AS (
    SELECT
        b.capture_id, b.device_id, b.origin, b.op_name,
        coalesce(sum(b.bytes) FILTER (b.is_live), 0) AS live_bytes,
        count(*) FILTER (b.is_live) AS live_blocks,
        count(*) AS allocations,
        sum(b.bytes) AS allocated_bytes,
        max(b.bytes) AS largest_bytes
    FROM blocks AS b
    GROUP BY b.capture_id, b.device_id, b.origin, b.op_name
),
older AS (
    SELECT p.capture_id, p.device_id, p.peak_bytes - coalesce(sum(s.live_bytes), 0) AS live_bytes
    FROM v1._memory_peak AS p /* inline */
    LEFT JOIN sums AS s ON s.capture_id = p.capture_id AND s.device_id = p.device_id
    GROUP BY p.capture_id, p.device_id, p.peak_bytes
),
together AS (
    SELECT
        s.capture_id, s.device_id, s.origin, s.op_name, s.live_bytes, s.live_blocks,
        s.allocations, s.allocated_bytes, s.largest_bytes
    FROM sums AS s
    UNION ALL
    SELECT
        r.capture_id, r.device_id, 'before the trace' AS origin, NULL AS op_name, r.live_bytes, NULL AS live_blocks,
        0 AS allocations, NULL AS allocated_bytes, NULL AS largest_bytes
    FROM older AS r
    WHERE r.live_bytes IS NOT NULL
)
SELECT
    t.capture_id, c.rank, c.labels, t.device_id,
    t.origin,
    t.op_name,
    CASE WHEN p.peak_bytes IS NOT NULL THEN t.live_bytes::BIGINT END AS live_bytes_at_peak,
    100.0 * t.live_bytes / nullif(p.peak_bytes, 0) AS peak_percent,
    CASE WHEN p.peak_bytes IS NOT NULL THEN t.live_blocks END AS live_blocks_at_peak,
    t.allocations,
    t.allocated_bytes::BIGINT AS allocated_bytes,
    t.largest_bytes
FROM together AS t
INNER JOIN v1._memory_peak AS p /* inline */ ON p.capture_id = t.capture_id AND p.device_id = t.device_id
LEFT JOIN main.capture AS c ON c.capture_id = t.capture_id;

COMMENT ON VIEW v1.memory_by_op IS 'GPU memory in use at its peak, by the operator that allocated it. Grain: capture × device × allocating operator.';
COMMENT ON COLUMN v1.memory_by_op.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN v1.memory_by_op.rank IS 'Rank of the capture; NULL if unknown. [-]';
COMMENT ON COLUMN v1.memory_by_op.labels IS 'Labels of the capture: sweep, threads, channels and others.';
COMMENT ON COLUMN v1.memory_by_op.device_id IS 'Device number within the capture. [-]';
COMMENT ON COLUMN v1.memory_by_op.origin IS 'operator; no operator (no operator was running on the allocating thread); before the trace.';
COMMENT ON COLUMN v1.memory_by_op.op_name IS 'Innermost operator running on the allocating thread; NULL if there was none.';
COMMENT ON COLUMN v1.memory_by_op.live_bytes_at_peak IS 'Bytes of its blocks that are live at the peak; NULL if the allocator recorded no totals. [bytes]';
COMMENT ON COLUMN v1.memory_by_op.peak_percent IS 'Share of the peak. [percent]';
COMMENT ON COLUMN v1.memory_by_op.live_blocks_at_peak IS 'Number of these blocks; NULL for those from before the trace. [count]';
COMMENT ON COLUMN v1.memory_by_op.allocations IS 'Number of allocations in the whole trace. [count]';
COMMENT ON COLUMN v1.memory_by_op.allocated_bytes IS 'Total bytes of these allocations. [bytes]';
COMMENT ON COLUMN v1.memory_by_op.largest_bytes IS 'Bytes of the largest allocation. [bytes]';
