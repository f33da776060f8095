"""Telling processes apart: nearly always a file holds one, merged files hold several."""

from __future__ import annotations

import duckdb

from tracedb_torch.account import Account
from tracedb_torch.link import TABLES


def processes(connection: duckdb.DuckDBPyConnection) -> list[int]:
    """Return the numbers of the processes in the staged rows, main ones only; one stray row makes no process.

    A process is one whose calls launched GPU work; without any such call, one that ran operators or ranges.
    """
    launching = connection.execute(
        """SELECT pid FROM staged_launch
        WHERE correlation_id IN (SELECT correlation_id FROM staged_gpu WHERE correlation_id IS NOT NULL)
        GROUP BY pid ORDER BY min(launch_id)"""
    ).fetchall()
    if launching:
        return [pid for (pid,) in launching]
    called = connection.execute("SELECT pid FROM staged_launch GROUP BY pid ORDER BY count(*) DESC, pid").fetchall()
    if called:
        return [called[0][0]]
    busy = connection.execute(
        """SELECT pid, count(*) AS rows FROM (
            SELECT pid FROM staged_op UNION ALL SELECT pid FROM staged_annotation WHERE style != 'gpu_projection'
        ) GROUP BY pid ORDER BY rows DESC, pid"""
    ).fetchall()
    return [busy[0][0]] if busy else []


def use_all(connection: duckdb.DuckDBPyConnection) -> None:
    """Make every staged row the current process's."""
    for table in TABLES:
        connection.execute(f"CREATE OR REPLACE TEMP VIEW part_{table} AS FROM staged_{table}")


def split(connection: duckdb.DuckDBPyConnection, pids: list[int], account: Account) -> None:
    """Find the process of every GPU row of a merged file: ``staged_part(event_id, pid)``.

    A correlation id names the launch only within its process. Of several candidates the launch that stands nearest in
    the file is taken: merged files keep each process's rows together or in order of time.
    """
    account.warned("several_processes", len(pids), "one file held several processes; each became a capture of its own")
    connection.execute(
        """
        CREATE OR REPLACE TEMP TABLE staged_part AS
        WITH candidate AS (
            SELECT g.event_id, g.pid AS device, arg_min(l.pid, abs(l.launch_id - g.event_id)) AS pid
            FROM staged_gpu AS g
            INNER JOIN staged_launch AS l ON g.correlation_id = l.correlation_id
            GROUP BY g.event_id, g.pid
        ),

        usual AS (SELECT device, mode(pid) AS pid FROM candidate GROUP BY device)

        SELECT g.event_id, coalesce(c.pid, u.pid) AS pid
        FROM staged_gpu AS g
        LEFT JOIN candidate AS c ON g.event_id = c.event_id
        LEFT JOIN usual AS u ON g.pid = u.device
        """
    )


def use(connection: duckdb.DuckDBPyConnection, pid: int, is_first: bool) -> None:
    """Make the rows of process ``pid`` current; rows of no known process go with the first."""
    known = "pid IN (SELECT DISTINCT pid FROM staged_part WHERE pid IS NOT NULL)"
    for table in TABLES:
        if table == "gpu":
            mine = f"event_id IN (SELECT event_id FROM staged_part WHERE pid = {pid}"
            mine += " OR pid IS NULL)" if is_first else ")"
        elif table == "annotation":
            mine = f"(style != 'gpu_projection' AND (pid = {pid}"
            mine += f" OR NOT ({known})))" if is_first else "))"
            device = f"(SELECT DISTINCT g.pid FROM staged_gpu AS g SEMI JOIN staged_part AS p ON g.event_id = p.event_id AND p.pid = {pid})"
            mine += f" OR (style = 'gpu_projection' AND pid IN {device})"
        else:
            mine = f"pid = {pid}" + (f" OR NOT ({known})" if is_first else "")
        connection.execute(f"CREATE OR REPLACE TEMP TABLE part_{table} AS FROM staged_{table} WHERE {mine}")
