"""Turn staged rows into schema rows: link counters to dispatches, calls to GPU events, agents to devices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import duckdb

from tracedb.ingester import Rows
from tracedb.ingester.issues import Account

TABLES = ("kernel", "counter", "copy", "call", "marker")
GPU_AGENTS = """
SELECT DISTINCT agent FROM (
    SELECT agent FROM staged_kernel WHERE proc = $proc
    UNION ALL
    SELECT agent FROM staged_seen WHERE proc = $proc
    UNION ALL
    SELECT agent FROM staged_counter WHERE proc = $proc
    UNION ALL
    SELECT CASE WHEN t.value LIKE '%HOST_TO_DEVICE' THEN c.target WHEN t.value LIKE '%DEVICE_TO_%' THEN c.source
        WHEN t.value NOT LIKE 'MEMORY_COPY%' THEN c.source END
    FROM staged_copy AS c LEFT JOIN staged_text AS t ON t.id = c.name
    WHERE c.proc = $proc
) WHERE agent IS NOT NULL
"""
"""The agents in the GPU rows of a process."""


def begin(connection: duckdb.DuckDBPyConnection) -> None:
    """Create the table that maps agents to devices."""
    connection.execute("CREATE OR REPLACE TEMP TABLE link_device (agent INTEGER, device_id INTEGER)")


def processes(connection: duckdb.DuckDBPyConnection) -> list[int]:
    """Return the processes that have rows."""
    union = " UNION ".join(f"SELECT proc FROM staged_{table}" for table in (*TABLES, "total"))
    return [proc for (proc,) in connection.execute(f"SELECT proc FROM ({union}) ORDER BY proc").fetchall()]


def _replays(connection: duckdb.DuckDBPyConnection, account: Account) -> None:
    """Keep the first pass of dispatches replayed for more counters; such dispatches are not plain runs."""
    connection.execute(
        """CREATE OR REPLACE TEMP TABLE link_replayed AS
        SELECT proc, dispatch, min(replay) AS first_pass FROM staged_kernel
        WHERE replay IS NOT NULL AND dispatch IS NOT NULL GROUP BY proc, dispatch HAVING max(replay) > 0"""
    )
    ((before,),) = connection.execute("SELECT count(*) FROM staged_kernel").fetchall()
    connection.execute(
        """DELETE FROM staged_kernel AS k USING link_replayed AS r
        WHERE k.proc = r.proc AND k.dispatch = r.dispatch AND k.replay > r.first_pass"""
    )
    ((after,),) = connection.execute("SELECT count(*) FROM staged_kernel").fetchall()
    account.left_aside(
        "replay_passes", before - after, "further passes over a dispatch for its counters; the first is kept"
    )


def prepare(connection: duckdb.DuckDBPyConnection, account: Account) -> int:
    """Join counters to dispatches; returns how many dispatches only counters record, which become kernels."""
    _replays(connection, account)
    connection.execute(
        """CREATE OR REPLACE TEMP TABLE link_counter AS
        SELECT proc, dispatch, counter, arg_min(value, event_id) AS value, count(*) AS times
        FROM staged_counter WHERE dispatch IS NOT NULL GROUP BY proc, dispatch, counter"""
    )
    connection.execute(
        """CREATE OR REPLACE TEMP TABLE link_dispatch AS
        WITH kernel AS (
            SELECT proc, dispatch, min(event_id) AS event_id FROM staged_kernel
            WHERE dispatch IS NOT NULL AND EXISTS (FROM staged_counter) GROUP BY proc, dispatch
        ),
        last AS (SELECT coalesce(max(event_id), 0) AS event_id FROM staged_kernel)
        SELECT
            c.proc, c.dispatch, c.first_row,
            coalesce(any_value(k.event_id), c.first_row + any_value(last.event_id)) AS event_id,
            any_value(k.event_id) IS NULL AS is_kernel
        FROM (SELECT proc, dispatch, min(event_id) AS first_row FROM staged_counter
            WHERE dispatch IS NOT NULL GROUP BY proc, dispatch) AS c
        LEFT JOIN kernel AS k ON k.proc = c.proc AND k.dispatch = c.dispatch
        CROSS JOIN last
        GROUP BY c.proc, c.dispatch, c.first_row"""
    )
    ((repeated,),) = connection.execute("SELECT coalesce(sum(times - 1), 0) FROM link_counter").fetchall()
    account.left_aside("counter_repeated", int(repeated), "counters repeated for a dispatch; the first is kept")
    ((nowhere,),) = connection.execute("SELECT count(*) FROM staged_counter WHERE dispatch IS NULL").fetchall()
    account.lost("counter_without_dispatch", nowhere, "counters that name no dispatch")
    ((untimed, made),) = connection.execute(
        """SELECT count(*) FILTER (is_kernel AND s.start_ns = 0 AND s.duration_ns = 0), count(*) FILTER (is_kernel)
        FROM link_dispatch AS d LEFT JOIN staged_counter AS s ON s.event_id = d.first_row"""
    ).fetchall()
    account.noted("dispatch_untimed", untimed, "dispatches that only the counters record, without times")
    return int(made)


def use(connection: duckdb.DuckDBPyConnection, proc: int, devices: Mapping[int, int]) -> None:
    """Select the current process, with its devices by agent."""
    connection.execute("DELETE FROM link_device")
    if devices:
        connection.executemany("INSERT INTO link_device VALUES (?, ?)", list(devices.items()))
    connection.execute(
        f"""CREATE OR REPLACE TEMP TABLE link_call AS
        SELECT correlation, min(event_id) AS launch_id FROM staged_call
        WHERE proc = {int(proc)} AND correlation IS NOT NULL GROUP BY correlation"""
    )


def rows(connection: duckdb.DuckDBPyConnection, proc: int, part: int, is_sorted: bool) -> Iterator[Rows]:
    """Yield the event rows of the current process; ``is_sorted``: its kernels are ordered by start."""
    order = "" if is_sorted else "ORDER BY d.device_id, g.start_ns, g.event_id"
    for staged, table, query in ROWS:
        ((count,),) = connection.execute(f"SELECT count(*) FROM staged_{staged} WHERE proc = ?", [proc]).fetchall()
        if count:
            yield Rows(table, connection.sql(query.format(proc=int(proc), order=order)), part)


GRID = ", ".join(f"(g.grid_{axis} + g.block_{axis} - 1) // nullif(g.block_{axis}, 0) AS grid_{axis}" for axis in "xyz")
BLOCK = ", ".join(f"nullif(g.block_{axis}, 0)::BIGINT AS block_{axis}" for axis in "xyz")
# Sorted while narrow; names are joined last, which keeps the order.
KERNELS = f"""
SELECT
    g.event_id, 'kernel' AS kind, coalesce(t.value, '(no name)') AS name, g.start_ns, g.duration_ns, g.device_id,
    g.stream AS stream_id, g.queue AS queue_id, g.correlation AS correlation_id, g.graph AS graph_id,
    g.graph_node AS graph_node_id, {GRID}, {BLOCK}, g.vgprs AS registers_per_thread,
    g.static_bytes::BIGINT AS static_shared_bytes, g.shared_bytes::BIGINT AS shared_bytes, c.launch_id,
    m.dispatch IS NOT NULL AS is_counted
FROM (
    SELECT g.*, d.device_id FROM staged_kernel AS g LEFT JOIN link_device AS d ON d.agent = g.agent
    WHERE g.proc = {{proc}} {{order}}
) AS g
LEFT JOIN staged_text AS t ON t.id = g.name
LEFT JOIN link_call AS c ON c.correlation = g.correlation
LEFT JOIN (
    SELECT dispatch FROM link_dispatch WHERE proc = {{proc}} AND NOT is_kernel
    UNION
    SELECT dispatch FROM link_replayed WHERE proc = {{proc}}
) AS m ON m.dispatch = g.dispatch
"""
COUNTED = """
SELECT
    d.event_id, 'kernel' AS kind, coalesce(t.value, '(no name)') AS name, g.start_ns, g.duration_ns, v.device_id,
    g.queue AS queue_id, g.correlation AS correlation_id, c.launch_id,
    TRY_CAST(g.vgprs AS INTEGER) AS registers_per_thread, g.static_bytes AS static_shared_bytes, true AS is_counted
FROM link_dispatch AS d
INNER JOIN staged_counter AS g ON g.event_id = d.first_row
LEFT JOIN staged_text AS t ON t.id = g.name
LEFT JOIN link_device AS v ON v.agent = g.agent
LEFT JOIN link_call AS c ON c.correlation = g.correlation
WHERE d.proc = {proc} AND d.is_kernel
ORDER BY v.device_id, g.start_ns, d.event_id
"""
COPIES = """
SELECT
    g.event_id + (SELECT greatest(coalesce(max(event_id), 0),
            (SELECT coalesce(max(last_event_id), 0) FROM staged_total)) FROM staged_kernel)
        + (SELECT coalesce(max(event_id), 0) FROM staged_counter) AS event_id,
    CASE WHEN t.value IN ('FillBuffer', 'Memset') THEN 'memset' ELSE 'memcpy' END AS kind,
    coalesce(t.value, '(no name)') AS name, g.start_ns, g.duration_ns,
    CASE WHEN t.value LIKE '%HOST_TO_DEVICE' THEN v.device_id ELSE s.device_id END AS device_id,
    g.stream AS stream_id, g.queue AS queue_id, g.correlation AS correlation_id, c.launch_id, g.bytes,
    CASE
        WHEN t.value LIKE '%HOST_TO_DEVICE' THEN 'HtoD' WHEN t.value LIKE '%DEVICE_TO_HOST' THEN 'DtoH'
        WHEN t.value LIKE '%DEVICE_TO_DEVICE' THEN 'DtoD' WHEN t.value LIKE '%HOST_TO_HOST' THEN 'HtoH'
    END AS copy_kind
FROM (FROM staged_copy WHERE proc = {proc}) AS g
LEFT JOIN staged_text AS t ON t.id = g.name
LEFT JOIN link_device AS s ON s.agent = g.source
LEFT JOIN link_device AS v ON v.agent = g.target
LEFT JOIN link_call AS c ON c.correlation = g.correlation
ORDER BY device_id, g.start_ns, g.event_id
"""
LAUNCHES = """
SELECT
    l.event_id AS launch_id, l.correlation AS correlation_id, coalesce(t.value, '(no name)') AS name,
    l.pid AS process_id, l.tid AS thread_id, l.start_ns, l.duration_ns
FROM (FROM staged_call WHERE proc = {proc}) AS l
LEFT JOIN staged_text AS t ON t.id = l.name
ORDER BY l.start_ns, l.event_id
"""
ANNOTATIONS = """
SELECT
    a.event_id AS annotation_id, coalesce(t.value, '(no name)') AS name, a.style, a.pid AS process_id,
    a.tid AS thread_id, a.start_ns, CASE WHEN a.style <> 'mark' THEN a.duration_ns END AS duration_ns,
    false AS is_open
FROM (FROM staged_marker WHERE proc = {proc}) AS a
LEFT JOIN staged_text AS t ON t.id = a.name
ORDER BY a.start_ns, a.event_id
"""
COUNTERS = """
SELECT d.event_id, coalesce(t.value, '(no name)') AS name, c.value
FROM link_counter AS c
INNER JOIN link_dispatch AS d ON d.proc = c.proc AND d.dispatch = c.dispatch
LEFT JOIN staged_text AS t ON t.id = c.counter
WHERE c.proc = {proc}
ORDER BY d.event_id, name
"""
ROWS = (
    ("kernel", "kernel_event", KERNELS),
    ("counter", "kernel_event", COUNTED),
    ("copy", "kernel_event", COPIES),
    ("call", "launch", LAUNCHES),
    ("marker", "annotation", ANNOTATIONS),
    ("counter", "counter", COUNTERS),
)
"""Staging table, schema table, and the query that turns the former's rows into the latter's."""
