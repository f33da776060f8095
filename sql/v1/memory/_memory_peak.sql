-- When is most memory allocated? Grain: capture × device. The first time, if there are several.
CREATE VIEW v1._memory_peak AS
SELECT
    m.capture_id, m.device_id,
    max(m.total_allocated_bytes) AS peak_bytes,
    arg_min(m.start_ns, (-m.total_allocated_bytes, m.place)) FILTER (m.total_allocated_bytes IS NOT NULL) AS peak_at_ns,
    arg_min(m.place, (-m.total_allocated_bytes, m.place)) FILTER (m.total_allocated_bytes IS NOT NULL) AS peak_place,
    max(m.total_reserved_bytes) AS reserved_peak_bytes,
    min(m.total_allocated_bytes) AS least_bytes,
    arg_min(m.total_allocated_bytes - m.bytes, m.place) AS first_bytes,
    count(*) FILTER (m.bytes > 0) AS allocations,
    count(*) FILTER (m.bytes < 0) AS frees,
    count(*) FILTER (m.bytes < 0 AND coalesce(m.previous_bytes, 0) <= 0) AS unmatched_frees,
    coalesce(-sum(m.bytes) FILTER (m.bytes < 0 AND coalesce(m.previous_bytes, 0) <= 0), 0) AS unmatched_bytes,
    count(*) FILTER (m.bytes > 0 AND m.next_place IS NULL) AS kept_blocks,
    coalesce(sum(m.bytes) FILTER (m.bytes > 0 AND m.next_place IS NULL), 0) AS kept_bytes
FROM v1._device_memory AS m
WHERE true /* filter m */
GROUP BY m.capture_id, m.device_id;
