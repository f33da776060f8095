-- Which modules hold the memory at its peak?
-- Grain: capture × device × module path. live_bytes_at_peak is of blocks whose innermost module it is,
-- total_live_bytes_at_peak also of those in modules inside it. Blocks of no module (backward runs outside of them) are the
-- row "outside modules", blocks from before the trace (parameters, optimizer state) the row "before the trace".
CREATE VIEW v1.memory_by_module AS
WITH owners AS (
    SELECT
        m.capture_id, m.rank, m.labels, m.device_id,
        CASE WHEN m.origin = 'before the trace' THEN m.origin ELSE coalesce(m.module_path, 'outside modules') END AS owner,
        sum(m.live_bytes_at_peak) AS live_bytes,
        sum(m.peak_percent) AS share,
        sum(m.allocations) AS allocations
    FROM v1._memory_owner AS m /* inline */
    GROUP BY ALL
),
levels AS (
    SELECT
        o.capture_id, o.rank, o.labels, o.device_id, o.live_bytes, o.share, o.allocations,
        string_split(o.owner, '.') AS parts,
        unnest(range(1, len(string_split(o.owner, '.')) + 1)) AS level
    FROM owners AS o
)
SELECT
    v.capture_id,
    any_value(v.rank) AS rank,
    any_value(v.labels) AS labels,
    v.device_id,
    array_to_string(v.parts[1:v.level], '.') AS path,
    v.level - 1 AS depth,
    coalesce(sum(v.live_bytes) FILTER (v.level = len(v.parts)), 0)::BIGINT AS live_bytes_at_peak,
    sum(v.live_bytes)::BIGINT AS total_live_bytes_at_peak,
    sum(v.share) AS peak_percent,
    sum(v.allocations)::BIGINT AS allocations
FROM levels AS v
GROUP BY v.capture_id, v.device_id, path, v.level;

COMMENT ON VIEW v1.memory_by_module IS 'GPU memory in use at its peak, by the nn.Module in which it was allocated. Grain: capture × device × module path.';
COMMENT ON COLUMN v1.memory_by_module.capture_id IS 'Capture. [-]';
COMMENT ON COLUMN v1.memory_by_module.rank IS 'Rank of the capture; NULL if unknown. [-]';
COMMENT ON COLUMN v1.memory_by_module.labels IS 'Labels of the capture: sweep, threads, channels and others.';
COMMENT ON COLUMN v1.memory_by_module.device_id IS 'Device number within the capture. [-]';
COMMENT ON COLUMN v1.memory_by_module.path IS 'Modules from the outermost to this one; outside modules; before the trace.';
COMMENT ON COLUMN v1.memory_by_module.depth IS 'Number of modules around it. [count]';
COMMENT ON COLUMN v1.memory_by_module.live_bytes_at_peak IS 'Bytes in use at the peak whose innermost module it is. [bytes]';
COMMENT ON COLUMN v1.memory_by_module.total_live_bytes_at_peak IS 'These and those of modules inside it. [bytes]';
COMMENT ON COLUMN v1.memory_by_module.peak_percent IS 'Share of the total in the peak. [percent]';
COMMENT ON COLUMN v1.memory_by_module.allocations IS 'Allocations in the whole trace, those of modules inside it included. [count]';
