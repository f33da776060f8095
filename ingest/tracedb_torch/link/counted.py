"""Rows of kernels with hardware counters of CUPTI's range profiler (``cuda_profiler_range``), and of the counters."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb

from tracedb.ingester import Rows

# Kineto divides the time of a whole session evenly among these rows, so that their times mean nothing: like results of
# Nsight Compute they start at 0, in the order of their numbers, and last what the counter of that name says.
COUNTED_SQL = """
SELECT c.counted_id AS event_id, 'kernel' AS kind, name.value AS name, 0::BIGINT AS start_ns,
    coalesce(CASE WHEN d.value BETWEEN 0 AND 9e18 THEN round(d.value)::BIGINT END, 0) AS duration_ns,
    CASE WHEN c.pid BETWEEN 0 AND 2147483647 THEN c.pid::INTEGER END AS device_id, true AS is_counted
FROM part_counted AS c
INNER JOIN staged_text AS name ON c.name = name.id
LEFT JOIN (
    SELECT m.counted_id, max(m.value) AS value
    FROM staged_metric AS m
    INNER JOIN staged_text AS t ON m.name = t.id
    WHERE t.value = 'gpu__time_duration.sum'
    GROUP BY m.counted_id
) AS d ON d.counted_id = c.counted_id
ORDER BY device_id, event_id
"""
COUNTER_SQL = """
SELECT m.counted_id AS event_id, name.value AS name, m.value
FROM staged_metric AS m
INNER JOIN part_counted AS c ON c.counted_id = m.counted_id
INNER JOIN staged_text AS name ON m.name = name.id
ORDER BY m.counted_id, name.value
"""


def rows(connection: duckdb.DuckDBPyConnection, part: int) -> Iterator[Rows]:
    """Yield the kernels of the current process that have counters, as counted dispatches, and the counters."""
    if connection.execute("SELECT EXISTS (FROM part_counted)").fetchall() == [(True,)]:
        yield Rows("kernel_event", connection.sql(COUNTED_SQL), part)
        yield Rows("counter", connection.sql(COUNTER_SQL), part)


def number(connection: duckdb.DuckDBPyConnection) -> int:
    """Return the number of counters of the current process."""
    ((found,),) = connection.execute(f"SELECT count(*) FROM ({COUNTER_SQL})").fetchall()
    return int(found)
