"""Turn staged rows into schema rows: assign each to its process, and GPU events to the calls that launched them."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb

from tracedb.ingester import Rows
from tracedb.ingester.issues import Account
from tracedb_nsys import nccl_payloads, ranges
from tracedb_nsys.staging_sql import COPY, SET

PARTS = ("kernel", "copy", "launch", "range", "sync")
GPU = """
CREATE OR REPLACE TEMP VIEW {0}_gpu AS
SELECT event_id, gpid, device_id, correlation_id, launch_id FROM {0}_kernel
UNION ALL
SELECT event_id, gpid, device_id, correlation_id, launch_id FROM {0}_copy
"""
USED_DEVICES = """
SELECT device_id FROM part_gpu WHERE device_id IS NOT NULL
UNION
SELECT device_id FROM staged_total WHERE device_id IS NOT NULL
"""
SHARED_DEVICES = """
SELECT device_id FROM staged_gpu WHERE device_id IS NOT NULL GROUP BY device_id HAVING count(DISTINCT gpid) > 1
"""
# Names as nsys prints them; the short form is that of other profilers. Exports before 2022.4 lack the enum table.
COPY_KINDS = (
    (0, "Unknown", None),
    (1, "Host-to-Device", "HtoD"),
    (2, "Device-to-Host", "DtoH"),
    (3, "Host-to-Array", "HtoA"),
    (4, "Array-to-Host", "AtoH"),
    (5, "Array-to-Array", "AtoA"),
    (6, "Array-to-Device", "AtoD"),
    (7, "Device-to-Array", "DtoA"),
    (8, "Device-to-Device", "DtoD"),
    (9, "Host-to-Host", "HtoH"),
    (10, "Peer-to-Peer", "PtoP"),
    (11, "Unified Host-to-Device", "HtoD"),
    (12, "Unified Device-to-Host", "DtoH"),
    (13, "Unified Device-to-Device", "DtoD"),
)


def prepare(connection: duckdb.DuckDBPyConnection, account: Account) -> list[int | None]:
    """Prepare the staged rows for linking; returns the processes in the order of their numbers."""
    ranges.prepare(connection, account)
    connection.execute(GPU.format("staged"))
    connection.execute("CREATE OR REPLACE TEMP TABLE link_copy_kind (id INTEGER, label VARCHAR, direction VARCHAR)")
    connection.executemany("INSERT INTO link_copy_kind VALUES (?, ?, ?)", COPY_KINDS)
    # nsys omits a version suffix of four digits, and no other.
    connection.execute(
        """CREATE OR REPLACE TEMP TABLE link_call_name AS
        SELECT id, regexp_replace(value, '_v[0-9]{4}$', '') AS value FROM staged_text
        WHERE id IN (SELECT name FROM staged_launch)"""
    )
    return _processes(connection, account)


def _processes(connection: duckdb.DuckDBPyConnection, account: Account) -> list[int | None]:
    found = connection.execute(
        """SELECT gpid FROM (
            SELECT gpid FROM staged_gpu UNION SELECT gpid FROM staged_launch UNION SELECT gpid FROM staged_range
            UNION SELECT gpid FROM staged_total
        ) WHERE gpid IS NOT NULL ORDER BY (gpid >> 24) & 16777215, gpid"""
    ).fetchall()
    processes: list[int | None] = [gpid for (gpid,) in found]
    if len(processes) > 1:
        _settle_unknown(connection, account)
    return processes or [None]


def _settle_unknown(connection: duckdb.DuckDBPyConnection, account: Account) -> None:
    """Assign GPU rows without a process to the process of the only call with their correlation id."""
    ((unknown,),) = connection.execute("SELECT count(*) FROM staged_gpu WHERE gpid IS NULL").fetchall()
    if not unknown:
        return
    for table in ("staged_kernel", "staged_copy"):
        connection.execute(
            f"""UPDATE {table} SET gpid = c.gpid, launch_id = c.launch_id FROM (
                SELECT correlation_id, min(gpid) AS gpid, min(launch_id) AS launch_id FROM staged_launch
                GROUP BY correlation_id HAVING count(*) = 1
            ) AS c WHERE {table}.gpid IS NULL AND {table}.correlation_id = c.correlation_id"""
        )
        connection.execute(f"UPDATE {table} SET correlation_id = NULL, launch_id = NULL WHERE gpid IS NULL")
    account.noted(
        "process_guessed",
        unknown,
        "GPU rows without a process; assigned by correlation id if only one call has it",
    )


def use(connection: duckdb.DuckDBPyConnection, gpid: int | None, is_first: bool, is_only: bool) -> None:
    """Select the rows of a process as views ``part_kernel``, ``part_launch`` and so on.

    Rows of no known process go with the first.
    """
    mine = "true" if is_only else f"gpid = {gpid}" + (" OR gpid IS NULL" if is_first else "")
    for table in PARTS:
        connection.execute(f"CREATE OR REPLACE TEMP VIEW part_{table} AS FROM staged_{table} WHERE {mine}")
    connection.execute(GPU.format("part"))


def rows(connection: duckdb.DuckDBPyConnection, part: int, are_sorted: bool) -> Iterator[Rows]:
    """Yield the event rows of the current process; ``are_sorted``: the kernels are ordered by start."""
    nccl_payloads.link(connection)
    ((devices,),) = connection.execute("SELECT count(DISTINCT device_id) FROM part_kernel").fetchall()
    order = "" if are_sorted and devices < 2 else "ORDER BY g.device_id, g.start_ns, g.event_id"
    yield Rows("kernel_event", connection.sql(KERNEL_SQL.format(order=order)), part)
    yield Rows("kernel_event", connection.sql(COPY_SQL), part)
    yield Rows("launch", connection.sql(LAUNCH_SQL), part)
    yield Rows("annotation", connection.sql(ranges.ANNOTATION_SQL), part)
    yield Rows("synchronization", connection.sql(SYNC_SQL), part)


EVENT = """
    g.event_id, 'kernel' AS kind, coalesce(n.value, '(string ' || g.name || ')', '(no name)') AS name,
    g.start_ns, g.duration_ns, g.device_id, g.stream_id::BIGINT AS stream_id, g.context_id::BIGINT AS context_id,
    g.correlation_id, g.launch_id, g.graph_id, g.graph_node_id,
    g.grid_x::BIGINT AS grid_x, g.grid_y::BIGINT AS grid_y, g.grid_z::BIGINT AS grid_z,
    g.block_x::BIGINT AS block_x, g.block_y::BIGINT AS block_y, g.block_z::BIGINT AS block_z,
    g.registers AS registers_per_thread, g.static_shared::BIGINT AS static_shared_bytes,
    g.dynamic_shared::BIGINT AS dynamic_shared_bytes, g.static_shared::BIGINT + g.dynamic_shared AS shared_bytes"""
# Sorted while narrow; the names are joined last, which keeps the order.
KERNEL_SQL = f"""
SELECT {EVENT}, m.bytes, m.collective, m.group_name, m.group_size
FROM (FROM part_kernel AS g {{order}}) AS g
LEFT JOIN (SELECT id, value FROM staged_text WHERE id IN (SELECT name FROM part_kernel)) AS n ON g.name = n.id
LEFT JOIN link_collective AS m ON g.event_id = m.event_id
"""
DIRECT_SQL = f"""
SELECT {EVENT} FROM ({{kernels}}) AS g LEFT JOIN direct_text AS n ON g.name = n.id
"""
COPY_SQL = f"""
SELECT
    g.event_id,
    CASE g.kind WHEN {COPY} THEN 'memcpy' WHEN {SET} THEN 'memset' ELSE 'graph' END AS kind,
    CASE g.kind
        WHEN {COPY} THEN '[CUDA memcpy ' || coalesce(c.label, 'kind ' || g.copy_kind, 'Unknown') || ']'
        WHEN {SET} THEN '[CUDA memset]'
        ELSE 'CUDA graph' || coalesce(' ' || g.graph_id, '')
    END AS name,
    g.start_ns, g.duration_ns, g.device_id, g.stream_id::BIGINT AS stream_id, g.context_id::BIGINT AS context_id,
    g.correlation_id, g.launch_id, g.graph_id, g.graph_node_id, g.bytes, c.direction AS copy_kind
FROM (FROM part_copy ORDER BY device_id, start_ns, event_id) AS g
LEFT JOIN link_copy_kind AS c ON g.copy_kind = c.id
"""
LAUNCH_SQL = """
SELECT
    l.launch_id, l.correlation_id, coalesce(n.value, '(string ' || l.name || ')', '(no name)') AS name,
    (l.gpid >> 24) & 16777215 AS process_id, l.tid::BIGINT AS thread_id, l.start_ns, l.duration_ns
FROM (FROM part_launch ORDER BY start_ns, launch_id) AS l
LEFT JOIN link_call_name AS n ON l.name = n.id
"""
# nsys numbers the recordings of an event (eventSyncId). Exports without that number name only the event, which may have
# been recorded several times: then the record is unknown.
SYNC_SQL = """
WITH records AS (
    SELECT
        r.gpid, r.cuda_event_id, r.record_id,
        min(r.stream_id) AS stream_id,
        CASE WHEN count(*) = 1 THEN min(r.correlation_id) END AS correlation_id
    FROM staged_record AS r
    GROUP BY r.gpid, r.cuda_event_id, r.record_id
)
SELECT
    s.sync_id, s.kind, s.correlation_id, s.start_ns, s.duration_ns, s.device_id, s.context_id::BIGINT AS context_id,
    s.stream_id, r.stream_id AS waited_stream_id, s.cuda_event_id, r.correlation_id AS record_correlation_id
FROM (FROM part_sync ORDER BY start_ns, sync_id) AS s
LEFT JOIN records AS r
    ON s.kind IN ('event', 'stream_wait') AND r.gpid IS NOT DISTINCT FROM s.gpid AND r.cuda_event_id = s.cuda_event_id
        AND r.record_id IS NOT DISTINCT FROM s.record_id
"""
