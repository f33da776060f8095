-- Which operators hold the memory at its peak?
-- Grain: capture × device × allocating operator × module × line (of memory snapshots). A block belongs to the innermost operator running on the allocating
-- thread. Memory in use at the peak that was not allocated in the trace is the row "before the trace", computed from
-- the allocator's own total, so rows add up to peak_bytes.
CREATE VIEW v1.memory_by_op AS
SELECT
    w.capture_id, w.rank, w.labels, w.device_id,
    w.origin,
    w.op_name,
    w.module_path,
    w.source,
    w.live_bytes_at_peak,
    w.peak_percent,
    w.live_blocks_at_peak,
    w.allocations,
    w.allocated_bytes,
    w.largest_bytes
FROM v1._memory_owner AS w /* inline */;

COMMENT ON VIEW v1.memory_by_op IS 'GPU memory in use at its peak, by the operator that allocated it. Grain: capture × device × allocating operator × module × line.';
COMMENT ON COLUMN v1.memory_by_op.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN v1.memory_by_op.rank IS 'Rank of the capture; NULL if unknown. [-]';
COMMENT ON COLUMN v1.memory_by_op.labels IS 'Labels of the capture: sweep, threads, channels and others.';
COMMENT ON COLUMN v1.memory_by_op.device_id IS 'Device number within the capture. [-]';
COMMENT ON COLUMN v1.memory_by_op.origin IS 'operator; stack (of a memory snapshot, which names no operator); no operator (none was running on the allocating thread); before the trace.';
COMMENT ON COLUMN v1.memory_by_op.op_name IS 'Innermost operator running on the allocating thread, or in the stack of a memory snapshot; NULL if there was none.';
COMMENT ON COLUMN v1.memory_by_op.module_path IS 'Modules around the operator, from the outermost; NULL outside of modules, or where Python frames were not recorded.';
COMMENT ON COLUMN v1.memory_by_op.source IS 'Of a memory snapshot: the nearest function of the user''s own code in the stack of the allocation, file(line): function, else the innermost function; NULL for traces.';
COMMENT ON COLUMN v1.memory_by_op.live_bytes_at_peak IS 'Bytes of its blocks that are live at the peak; NULL if the allocator recorded no totals. [bytes]';
COMMENT ON COLUMN v1.memory_by_op.peak_percent IS 'Share of the peak. [percent]';
COMMENT ON COLUMN v1.memory_by_op.live_blocks_at_peak IS 'Number of these blocks; NULL for those from before the trace. [count]';
COMMENT ON COLUMN v1.memory_by_op.allocations IS 'Number of allocations in the whole trace. [count]';
COMMENT ON COLUMN v1.memory_by_op.allocated_bytes IS 'Total bytes of these allocations. [bytes]';
COMMENT ON COLUMN v1.memory_by_op.largest_bytes IS 'Bytes of the largest allocation. [bytes]';
