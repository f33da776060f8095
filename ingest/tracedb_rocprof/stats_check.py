"""Check rows against the tool's own statistics, and against the names and agents they refer to."""

from __future__ import annotations

from collections.abc import Mapping

import duckdb

from tracedb.ingester.issues import Account
from tracedb_rocprof.unstaged_kernels import UnstagedKernels

OPTION = {
    "staged_kernel": "`rocprofv3 --kernel-trace`",
    "staged_copy": "`rocprofv3 --memory-copy-trace`",
    "staged_marker": "`rocprofv3 --marker-trace`",
    "staged_call": "`rocprofv3 --hip-trace`",
}
WHOLE = ("kernel_stats", "memory_copy_stats")
"""Files that list everything in their table."""
NAMED = {"kernel": "kernel_unknown", "counter": "kernel_unknown"}
Said = Mapping[int, tuple[int, int]]
"""Calls and sum of durations by name (text number)."""
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
    """Compare a statistics file with the staged rows."""
    table = next((table for name, table in FILES if name in file), None)
    if table is None or not said:
        return
    query = f"SELECT name, count(*) AS calls, sum(duration_ns) AS total FROM {table} GROUP BY name"
    if table == "staged_kernel":
        query += " UNION ALL SELECT name, calls, total_ns AS total FROM staged_total"
    ((is_there,),) = connection.execute(f"SELECT count(*) > 0 FROM ({query})").fetchall()
    if not is_there:
        calls = sum(calls for calls, _ in said.values())
        trace = file.replace("stats", "trace")
        account.warned(
            "trace_missing",
            calls,
            f"{file} tells of {calls:,} calls of {len(said):,} names, {sum(total for _, total in said.values()):,} ns, "
            f"but they were not recorded one by one, or {trace} is missing: put it next to it, or record again with "
            f"{OPTION[table]}",
        )
        return
    connection.execute("CREATE OR REPLACE TEMP TABLE check_said (name BIGINT, calls BIGINT, total BIGINT)")
    connection.executemany(
        "INSERT INTO check_said VALUES (?, ?, ?)", [(name, calls, total) for name, (calls, total) in said.items()]
    )
    different = connection.execute(
        f"""WITH found AS (
            SELECT t.value AS name, sum(e.calls) AS calls, sum(e.total) AS total
            FROM ({query}) AS e INNER JOIN staged_text AS t ON t.id = e.name GROUP BY t.value
        )
        SELECT
            coalesce(s.value, f.name) AS name, coalesce(s.calls, 0), coalesce(f.calls, 0)::BIGINT,
            coalesce(s.total, 0), coalesce(f.total, 0)::BIGINT
        FROM (SELECT * FROM check_said AS c INNER JOIN staged_text AS n ON n.id = c.name) AS s
        FULL JOIN found AS f ON f.name = s.value
        WHERE (f.calls IS DISTINCT FROM s.calls OR f.total IS DISTINCT FROM s.total) AND (s.calls IS NOT NULL OR ?)
        ORDER BY name""",
        [any(name in file for name in WHOLE)],
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


def unknown_names(connection: duckdb.DuckDBPyConnection, account: Account, unknown: Mapping[int, str]) -> None:
    """Warn of rows whose kernel, operation or counter name is not in the recording."""
    if not unknown:
        return
    numbers = ", ".join(map(str, unknown))
    for table in ("kernel", "counter", "copy", "call", "marker"):
        ((count, first),) = connection.execute(
            f"SELECT count(*), min(name) FROM staged_{table} WHERE name IN ({numbers})"
        ).fetchall()
        if count:
            account.warned(
                NAMED.get(table, "name_unknown"), count, f"rows whose name is not recorded, as {unknown[first]}"
            )


def unknown_agents(
    connection: duckdb.DuckDBPyConnection,
    account: Account,
    proc: int,
    unknown: Mapping[int, str],
    direct: UnstagedKernels,
) -> None:
    """Warn of rows on agents that the recording does not list; their device is NULL."""
    total = 0
    for number, label in unknown.items():
        ((count,),) = connection.execute(
            """SELECT (SELECT count(*) FROM staged_kernel WHERE proc = $proc AND agent = $agent)
                + (SELECT count(*) FROM staged_copy WHERE proc = $proc AND $agent IN (source, target))
                + (SELECT count(*) FROM staged_counter WHERE proc = $proc AND agent = $agent)""",
            {"proc": proc, "agent": number},
        ).fetchall()
        total += count + direct.count(proc, label)
    named = ", ".join(unknown.values())
    account.warned("agent_unknown", total, f"rows on agents that are not listed, without device: {named}")
