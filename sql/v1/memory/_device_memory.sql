-- Which blocks of GPU memory were allocated and released, in which order? Grain: event of a GPU's allocator. place
-- numbers the events of a device; previous_bytes and next_place belong to the previous and next event at the same
-- address, which show whether the allocation of a release is in the trace, and how long a block lives.
CREATE VIEW v1._device_memory AS
WITH placed AS (
    SELECT
        m.capture_id, m.memory_event_id,
        c.source, c.rank, c.labels,
        m.device_id, m.address, m.bytes,
        m.total_allocated_bytes, m.total_reserved_bytes,
        m.process_id, m.thread_id, m.start_ns, m.frame_id,
        row_number() OVER (
            PARTITION BY m.capture_id, m.device_id ORDER BY m.start_ns, m.memory_event_id
        ) AS place
    FROM main.memory_event AS m
    LEFT JOIN main.capture AS c ON c.capture_id = m.capture_id
    WHERE m.device_type <> 0 AND m.device_id >= 0
)
SELECT
    p.*,
    lag(p.bytes) OVER (PARTITION BY p.capture_id, p.device_id, p.address ORDER BY p.place) AS previous_bytes,
    lead(p.place) OVER (PARTITION BY p.capture_id, p.device_id, p.address ORDER BY p.place) AS next_place
FROM placed AS p;
