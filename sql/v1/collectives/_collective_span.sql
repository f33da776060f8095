-- Until when do started collectives run: what a kernel is compared with to decide whether it overlaps one.
-- Grain: capture × device × start of a collective. Method: reach_ns is the latest end of all collectives started so
-- far, so [start_ns, reach_ns) of the last start before a kernel's end decides. Merged intervals would give the same
-- result except for touching intervals and intervals of zero length.
CREATE VIEW v1._collective_span AS
WITH starts AS (
    SELECT e.capture_id, e.device_id, e.start_ns, max(e.end_ns) AS end_ns
    FROM v1._gpu_event AS e
    WHERE e.kind = 'kernel' AND e.class = 'collective'
    GROUP BY e.capture_id, e.device_id, e.start_ns
)
SELECT
    s.capture_id,
    s.device_id,
    s.start_ns,
    max(s.end_ns) OVER (PARTITION BY s.capture_id, s.device_id ORDER BY s.start_ns) AS reach_ns
FROM starts AS s;
