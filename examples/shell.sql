-- Queries on a tracedb database, for the DuckDB shell: duckdb -readonly run.duckdb < examples/shell.sql
-- A short name such as top_kernels is the newest version of a view; v1.top_kernels never changes.

-- Which kernels take the time?
SELECT left(name, 36) AS kernel, class, calls, total_ns, round(share_percent, 1) AS share
FROM top_kernels
ORDER BY total_ns DESC
LIMIT 5;

-- Which ranks wait, and for which rank?
SELECT
    labels['channels']::INTEGER AS channels, rank, total_ns,
    round(computation_percent, 1) AS computing,
    round(exposed_collective_percent, 1) AS in_collectives,
    round(idle_percent, 1) AS idle
FROM gpu_timeline
ORDER BY channels, rank;

-- How much slower is a GEMM that overlaps a collective?
SELECT
    labels['channels']::INTEGER AS channels, input_dims, sum(calls) AS calls,
    round(sum(overlapped_mean_ns * overlapped_calls) / sum(overlapped_calls)) AS beside_ns,
    round(sum(alone_mean_ns * alone_calls) / sum(alone_calls)) AS alone_ns
FROM gemm_variance
WHERE input_dims IN ('[[8192, 4096], [4096, 1024]]', '[[8192, 3072], [3072, 1024]]')
GROUP BY ALL
ORDER BY input_dims, channels;

-- How much data did the collectives move? Tables hold facts; times are in ns on the clock of each capture.
SELECT collective, dtype, count(*) AS calls, max(message_in_elements) AS largest, sum(duration_ns) AS total_ns
FROM kernel_event
WHERE collective IS NOT NULL
GROUP BY ALL
ORDER BY ALL;

-- What does a column mean, and what is its unit?
SELECT column_name, data_type, comment
FROM duckdb_columns()
WHERE schema_name = 'v1' AND table_name = 'top_kernels'
ORDER BY column_index;
