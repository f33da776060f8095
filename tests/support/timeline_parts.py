"""Checks that the parts of the GPU's time sum to the whole, in every view that divides it."""

from __future__ import annotations

import duckdb

_PARTS = """
SELECT 'gpu_timeline' AS name, capture_id,
    computation_ns + exposed_collective_ns + exposed_copy_ns = busy_ns AS is_busy,
    busy_ns + idle_ns = total_ns AS is_total, total_ns,
    least(computation_ns, exposed_collective_ns, exposed_copy_ns, idle_ns) < 0 AS is_negative
FROM v1.gpu_timeline
UNION ALL BY NAME
SELECT 'idle_breakdown' AS name, i.capture_id, true AS is_busy, t.total_ns,
    i.idle_ns = t.idle_ns AND i.idle_ns = coalesce(i.host_bound_ns, 0) + coalesce(i.device_bound_ns, 0) + i.unknown_ns
        AS is_total,
    least(i.host_bound_ns, i.device_bound_ns, i.unknown_ns) < 0 AS is_negative
FROM v1.idle_breakdown AS i
INNER JOIN v1.gpu_timeline AS t
    ON t.capture_id = i.capture_id AND t.device_id IS NOT DISTINCT FROM i.device_id
UNION ALL BY NAME
SELECT 'hta_temporal_breakdown' AS name, capture_id, true AS is_busy,
    round("kernel_time(us)" * 1e3)::BIGINT AS total_ns,
    round("idle_time(us)" * 1e3)::BIGINT + round("compute_time(us)" * 1e3)::BIGINT
        + round("non_compute_time(us)" * 1e3)::BIGINT = total_ns AS is_total,
    least("idle_time(us)", "compute_time(us)", "non_compute_time(us)") < 0 AS is_negative
FROM v1.hta_temporal_breakdown
UNION ALL BY NAME
SELECT 'tracelens_gpu_timeline' AS name, capture_id,
    part['computation_time'] + part['exposed_comm_time'] + part['exposed_memcpy_time'] = part['busy_time'] AS is_busy,
    part['busy_time'] + part['idle_time'] = part['total_time'] AS is_total,
    part['total_time'] AS total_ns,
    list_min(map_values(part)) < 0 AS is_negative
FROM (
    SELECT capture_id, map_from_entries(list(("type", round("time ms" * 1e6)::BIGINT))) AS part
    FROM v1.tracelens_gpu_timeline
    GROUP BY capture_id
)
"""


def check(connection: duckdb.DuckDBPyConnection, least: int) -> None:
    """Check that every view divides the time of every capture with GPU activity, of which there are ``least``."""
    connection.execute(f"CREATE TEMP TABLE part AS {_PARTS}")
    counts = connection.execute(
        "SELECT name, count(DISTINCT capture_id) FROM part GROUP BY name ORDER BY name"
    ).fetchall()
    count = with_gpu(connection)
    assert count >= least
    assert [number for _, number in counts] == [count] * 4
    faults = connection.execute(
        """SELECT name, capture_id FROM part
           WHERE is_busy IS NOT TRUE OR is_total IS NOT TRUE OR is_negative ORDER BY ALL"""
    )
    assert faults.fetchall() == []


def with_gpu(connection: duckdb.DuckDBPyConnection) -> int:
    """Return how many captures have GPU activity that a plain report looks at."""
    ((count,),) = connection.execute("SELECT count(DISTINCT capture_id) FROM v1._gpu_event").fetchall()
    return int(count)
