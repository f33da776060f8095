-- How much GPU memory does the framework hold over time?
-- Grain: device × event of its allocator. Totals are those recorded by the allocator after the event; nothing is summed
-- here, because blocks from before the trace are unknown.
CREATE VIEW v1.memory_timeline AS
SELECT
    memory.capture_id, memory.rank, memory.labels, memory.device_id,
    memory.memory_event_id,
    memory.start_ns AS time_ns,
    memory.bytes,
    memory.total_allocated_bytes AS allocated_bytes,
    memory.total_reserved_bytes AS reserved_bytes
FROM v1._device_memory AS memory
WHERE true /* filter memory */;

COMMENT ON VIEW v1.memory_timeline IS 'GPU memory of the framework''s allocator over time. Grain: device × event of its allocator.';
COMMENT ON COLUMN v1.memory_timeline.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN v1.memory_timeline.rank IS 'Rank of the capture; NULL if unknown. [-]';
COMMENT ON COLUMN v1.memory_timeline.labels IS 'Labels of the capture: sweep, threads, channels and others.';
COMMENT ON COLUMN v1.memory_timeline.device_id IS 'Device number within the capture. [-]';
COMMENT ON COLUMN v1.memory_timeline.memory_event_id IS 'Number of the event within the capture (memory_event.memory_event_id). [-]';
COMMENT ON COLUMN v1.memory_timeline.time_ns IS 'Time of the event, on the capture''s clock. [ns]';
COMMENT ON COLUMN v1.memory_timeline.bytes IS 'Bytes allocated; negative for a release. [bytes]';
COMMENT ON COLUMN v1.memory_timeline.allocated_bytes IS 'Bytes in use on the device after the event, as recorded by the allocator. [bytes]';
COMMENT ON COLUMN v1.memory_timeline.reserved_bytes IS 'Bytes reserved on the device after the event, as recorded by the allocator. [bytes]';
