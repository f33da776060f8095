"""Parents of operators, and operators around API calls: by the compiled library if possible, else by SQL.

Both give the same result; the library takes a tenth of the time, but memory for every operator.
"""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa

from tracedb.intervals import nesting
from tracedb.intervals.native_nesting import NOTHING, Column, Spans, library, nest
from tracedb_torch.int_columns import column

MOST = 2_500_000  # operators and calls held in memory at a time: 100 MB, from 3 GB of JSON
OPERATORS = """SELECT op_id AS item_id, 0 AS lane_a, coalesce(tid, -1) AS lane_b, start_ns,
    start_ns + duration_ns AS end_ns, coalesce(external_id, op_id) AS tie FROM part_op"""
ORDER = "lane_b, start_ns, end_ns DESC, tie, item_id"
CALLS = """SELECT DISTINCT launch_id AS call_id, 0 AS lane_a, coalesce(tid, -1) AS lane_b, start_ns,
    start_ns + duration_ns AS end_ns FROM link_gpu
WHERE launch_id IS NOT NULL AND event_id NOT IN (SELECT event_id FROM link_op)"""


def enclose(connection: duckdb.DuckDBPyConnection, slack_ns: int) -> None:
    """Fill temp table link_parent(op_id, parent_id), and add the innermost operator around each call to link_op.

    Only calls of GPU rows that have no operator yet are considered.
    """
    if not _by_library(connection, slack_ns):
        _by_sql(connection, slack_ns)


def _by_sql(connection: duckdb.DuckDBPyConnection, slack_ns: int) -> None:
    nesting.nest(connection, OPERATORS, slack_ns)
    connection.execute("CREATE OR REPLACE TEMP TABLE link_parent AS SELECT item_id AS op_id, parent_id FROM nest_out")
    ((waiting,),) = connection.execute(f"SELECT count(*) FROM ({CALLS})").fetchall()
    if waiting:
        nesting.enclose(connection, CALLS, slack_ns)
        _add(connection, "call_out")
    nesting.drop(connection)


def _add(connection: duckdb.DuckDBPyConnection, found: str) -> None:
    connection.execute(
        f"""INSERT INTO link_op SELECT g.event_id, c.item_id FROM link_gpu AS g
        INNER JOIN {found} AS c ON g.launch_id = c.call_id
        WHERE g.event_id NOT IN (SELECT event_id FROM link_op)"""
    )


def _by_library(connection: duckdb.DuckDBPyConnection, slack_ns: int) -> bool:
    """Try the library; False if it is missing, if operators cross, or if there are too many."""
    if library() is None:
        return False
    ((operators, events),) = connection.execute(
        "SELECT (SELECT count(*) FROM part_op), (SELECT count(launch_id) FROM link_gpu)"
    ).fetchall()
    if operators + events > MOST:
        return False
    lane, start, end, item = _columns(
        connection,
        f"SELECT lane_b, start_ns, end_ns, item_id FROM ({OPERATORS}) ORDER BY {ORDER}",
        operators,
    )
    call_lane, call_start, call_end, call = _columns(
        connection, f"SELECT lane_b, start_ns, end_ns, call_id FROM ({CALLS}) ORDER BY 1, 2", events
    )
    found = nest(Spans(lane, start, end), item, Spans(call_lane, call_start, call_end), slack_ns)
    if found is None:
        return False
    parent, around = found
    parents = pa.table([column(item), column(parent, parent != NOTHING)], names=["op_id", "parent_id"])
    connection.register("found_parent", parents)
    connection.execute("CREATE OR REPLACE TEMP TABLE link_parent AS FROM found_parent")
    connection.unregister("found_parent")
    is_found = around != NOTHING
    if is_found.any():
        inner = pa.table([column(call[is_found]), column(around[is_found])], names=["call_id", "item_id"])
        connection.register("found_call", inner)
        _add(connection, "found_call")
        connection.unregister("found_call")
    return True


def _columns(connection: duckdb.DuckDBPyConnection, query: str, most: int) -> list[Column]:
    """Return the four columns of a query of at most ``most`` rows, without holding them twice."""
    columns = [np.empty(most, np.int64) for _ in range(4)]
    place = 0
    for batch in pa.RecordBatchReader.from_stream(connection.sql(query)):
        for numbers, found in zip(columns, batch.columns, strict=True):
            numbers[place : place + batch.num_rows] = found
        place += batch.num_rows
    return [numbers[:place] for numbers in columns]
