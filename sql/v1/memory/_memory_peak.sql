-- When is most memory allocated? Grain: capture × device. The first time, if there are several.
CREATE VIEW v1._memory_peak AS
SELECT
    memory.capture_id, memory.device_id,
    max(memory.total_allocated_bytes) AS peak_bytes,
    arg_min(memory.start_ns, (-memory.total_allocated_bytes, memory.place)) FILTER (memory.total_allocated_bytes IS NOT NULL) AS peak_at_ns,
    arg_min(memory.place, (-memory.total_allocated_bytes, memory.place)) FILTER (memory.total_allocated_bytes IS NOT NULL) AS peak_place,
    max(memory.total_reserved_bytes) AS reserved_peak_bytes,
    min(memory.total_allocated_bytes) AS least_bytes,
    arg_min(memory.total_allocated_bytes - memory.bytes, memory.place) AS first_bytes,
    count(*) FILTER (memory.bytes > 0) AS allocations,
    count(*) FILTER (memory.bytes < 0) AS frees,
    count(*) FILTER (memory.bytes < 0 AND coalesce(memory.previous_bytes, 0) <= 0) AS unmatched_frees,
    coalesce(-sum(memory.bytes) FILTER (memory.bytes < 0 AND coalesce(memory.previous_bytes, 0) <= 0), 0) AS unmatched_bytes,
    count(*) FILTER (memory.bytes > 0 AND memory.next_place IS NULL) AS kept_blocks,
    coalesce(sum(memory.bytes) FILTER (memory.bytes > 0 AND memory.next_place IS NULL), 0) AS kept_bytes
FROM v1._device_memory AS memory
WHERE true /* filter memory */
GROUP BY memory.capture_id, memory.device_id;
