-- How much GPU memory does a run need at most, and when?
-- Grain: capture × device. Peaks are the maxima of the totals recorded by the allocator. Blocks may be older than the
-- trace: releases without an allocation in the trace are counted, not corrected for.
CREATE VIEW v1.memory_peak AS
SELECT
    p.capture_id, c.rank, c.labels, p.device_id,
    p.peak_bytes,
    p.peak_at_ns,
    p.reserved_peak_bytes,
    p.first_bytes,
    p.least_bytes,
    p.allocations,
    p.frees,
    p.unmatched_frees,
    p.unmatched_bytes::BIGINT AS unmatched_bytes,
    p.kept_blocks,
    p.kept_bytes::BIGINT AS kept_bytes
FROM v1._memory_peak AS p /* inline */
LEFT JOIN main.capture AS c ON c.capture_id = p.capture_id;

COMMENT ON VIEW v1.memory_peak IS 'Peak GPU memory of the framework''s allocator. Grain: capture × device.';
COMMENT ON COLUMN v1.memory_peak.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN v1.memory_peak.rank IS 'Rank of the capture; NULL if unknown. [-]';
COMMENT ON COLUMN v1.memory_peak.labels IS 'Labels of the capture: sweep, threads, channels and others.';
COMMENT ON COLUMN v1.memory_peak.device_id IS 'Device number within the capture. [-]';
COMMENT ON COLUMN v1.memory_peak.peak_bytes IS 'Maximum bytes in use. [bytes]';
COMMENT ON COLUMN v1.memory_peak.peak_at_ns IS 'First time of that maximum, on the capture''s clock. [ns]';
COMMENT ON COLUMN v1.memory_peak.reserved_peak_bytes IS 'Maximum bytes reserved on the device. [bytes]';
COMMENT ON COLUMN v1.memory_peak.first_bytes IS 'Bytes in use before the first event. [bytes]';
COMMENT ON COLUMN v1.memory_peak.least_bytes IS 'Minimum bytes in use after an event. [bytes]';
COMMENT ON COLUMN v1.memory_peak.allocations IS 'Number of allocations in the trace. [count]';
COMMENT ON COLUMN v1.memory_peak.frees IS 'Number of releases in the trace. [count]';
COMMENT ON COLUMN v1.memory_peak.unmatched_frees IS 'Number of releases of blocks whose allocation is not in the trace. [count]';
COMMENT ON COLUMN v1.memory_peak.unmatched_bytes IS 'Their bytes. [bytes]';
COMMENT ON COLUMN v1.memory_peak.kept_blocks IS 'Number of blocks allocated but not released in the trace. [count]';
COMMENT ON COLUMN v1.memory_peak.kept_bytes IS 'Their bytes. [bytes]';
