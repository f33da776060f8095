"""The tool's own statistics as a cross-check: where calls or sums differ from the rows read, a warning says so."""

from __future__ import annotations

from collections.abc import Mapping

import duckdb

from tracedb_rocprof.account import Account

Said = Mapping[int, tuple[int, int]]
"""Calls and sum of durations by the number of a name."""
FILES = (
    ("kernel_stats", "staged_kernel"),
    ("results.stats", "staged_kernel"),
    ("memory_copy_stats", "staged_copy"),
    ("marker_api_stats", "staged_marker"),
    ("hip_api_stats", "staged_call"),
    ("hsa_api_stats", "staged_call"),
    ("rccl_api_stats", "staged_call"),
)


def compare(connection: duckdb.DuckDBPyConnection, account: Account, file: str, said: Said) -> None:
    """Compare what a file of statistics says with what was staged."""
    table = next((table for name, table in FILES if name in file), None)
    if table is None or not said:
        return
    query = f"SELECT name, count(*) AS calls, sum(duration_ns) AS total FROM {table} GROUP BY name"
    if table == "staged_kernel":
        query += " UNION ALL SELECT name, calls, total_ns AS total FROM staged_total"
    connection.execute("CREATE OR REPLACE TEMP TABLE check_said (name BIGINT, calls BIGINT, total BIGINT)")
    connection.executemany(
        "INSERT INTO check_said VALUES (?, ?, ?)", [(name, calls, total) for name, (calls, total) in said.items()]
    )
    different = connection.execute(
        f"""WITH found AS (
            SELECT t.value AS name, sum(e.calls) AS calls, sum(e.total) AS total
            FROM ({query}) AS e INNER JOIN staged_text AS t ON t.id = e.name GROUP BY t.value
        )
        SELECT n.value, s.calls, coalesce(f.calls, 0)::BIGINT, s.total, coalesce(f.total, 0)::BIGINT
        FROM check_said AS s
        INNER JOIN staged_text AS n ON n.id = s.name
        LEFT JOIN found AS f ON f.name = n.value
        WHERE f.calls IS DISTINCT FROM s.calls OR f.total IS DISTINCT FROM s.total
        ORDER BY n.value"""
    ).fetchall()
    connection.execute("DROP TABLE temp.check_said")
    if different:
        name, calls, found, total, sum_found = different[0]
        account.warned(
            "stats_mismatch",
            len(different),
            f"{file} and the trace differ, first in {name[:80]}: {calls:,} calls and {total:,} ns against {found:,} "
            f"and {sum_found:,}; the trace is kept",
        )
