"""Facts too dear for a view, worked out once at load: nesting of ranges, and the range around each GPU event."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import duckdb
import numpy as np
import pyarrow as pa

from tracedb import around, nesting, nesting_arrays, nesting_few

if TYPE_CHECKING:
    from tracedb.clipping import Passing

INSERT_ANNOTATIONS = """
INSERT INTO main.annotation BY NAME
SELECT ? AS capture_id, a.* REPLACE (n.parent_id AS parent_id, n.depth AS depth)
FROM annotation_in AS a LEFT JOIN {nested} AS n ON a.annotation_id = n.item_id
"""
NESTED = """
SELECT lane_b, start_ns, end_ns, item_id, coalesce(parent_id, item_id), depth::BIGINT FROM nest_out
WHERE end_ns > start_ns
"""
RANGES = "style NOT IN ('mark', 'gpu_projection') AND (duration_ns IS NOT NULL OR is_open)"


def begin(connection: duckdb.DuckDBPyConnection) -> None:
    """Make the temp table that takes a capture's annotations until their parents are known."""
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE annotation_in AS SELECT * EXCLUDE (capture_id) FROM main.annotation LIMIT 0"
    )


def finish(connection: duckdb.DuckDBPyConnection, capture_id: int, passing: Passing | None) -> None:
    """Write the capture's annotations with parent and depth, its annotation_kernel and clipped_event rows.

    Inside its transaction, after all other rows of it. ``passing`` may know already which events are clipped.
    """
    amd = connection.execute("SELECT 1 FROM main.device WHERE capture_id = ? AND vendor = 'AMD' LIMIT 1", [capture_id])
    if amd.fetchall():
        from tracedb import clipping  # its arrays take time to import

        clipping.clip(connection, capture_id, passing)
    events = _events(connection, capture_id)
    nested = _nest_few(connection)
    if nested is None:
        _nest_many(connection, capture_id, events)
    else:
        _write_nested(connection, capture_id, nested)
        if nested and events.count:
            around.by_arrays(connection, capture_id, _columns(nested), events)
    connection.execute("DROP TABLE temp.annotation_in")


def _events(connection: duckdb.DuckDBPyConnection, capture_id: int) -> around.Events:
    ((launches, events),) = connection.execute(
        """SELECT (SELECT count(*) FROM main.launch WHERE capture_id = $capture),
            (SELECT count(*) FROM main.kernel_event WHERE capture_id = $capture)""",
        {"capture": capture_id},
    ).fetchall()
    return around.Events(events, bool(launches))


def _nest_few(connection: duckdb.DuckDBPyConnection) -> list[nesting_few.Nested] | None:
    """Nest ranges without SQL; None where they are many, where any cross or is open."""
    ranges = connection.execute(
        f"""SELECT coalesce(thread_id, -1), start_ns, start_ns + duration_ns, annotation_id FROM annotation_in
        WHERE {RANGES} LIMIT {nesting_few.MOST + 1}"""
    ).fetchall()
    if len(ranges) > nesting_few.MOST or any(end is None for _, _, end, _ in ranges):
        return None
    return nesting_few.nest([nesting_few.Range(*found) for found in ranges])


def _write_nested(connection: duckdb.DuckDBPyConnection, capture_id: int, nested: Sequence[nesting_few.Nested]) -> None:
    found = pa.table(  # noqa: F841 - DuckDB finds it by name
        {
            "item_id": pa.array([item.number for item, _, _ in nested], pa.int64()),
            "parent_id": pa.array([parent.number if parent else None for _, parent, _ in nested], pa.int64()),
            "depth": pa.array([depth for _, _, depth in nested], pa.int32()),
        }
    )
    connection.execute(INSERT_ANNOTATIONS.format(nested="found"), [capture_id])


def _columns(nested: Sequence[nesting_few.Nested]) -> nesting_arrays.Ranges:
    rows = [(*item, parent.number if parent else item.number, depth) for item, parent, depth in nested]
    return nesting_arrays.Ranges(*np.array(rows, np.int64).T)


def _nest_many(connection: duckdb.DuckDBPyConnection, capture_id: int, events: around.Events) -> None:
    """Nest ranges and find those around events, however many there are."""
    crossing = nesting.nest(
        connection,
        f"""SELECT annotation_id AS item_id, 0 AS lane_a, coalesce(thread_id, -1) AS lane_b, start_ns,
            coalesce(start_ns + duration_ns, {_last_ns(connection, capture_id)}) AS end_ns, annotation_id AS tie
        FROM annotation_in WHERE {RANGES}""",
    )
    connection.execute(INSERT_ANNOTATIONS.format(nested="nest_out"), [capture_id])
    ((ranges,),) = connection.execute("SELECT count(*) FROM nest_out").fetchall()
    if crossing or ranges > nesting_arrays.MOST:
        around.by_statements(connection, capture_id, events, crossing)
    elif events.count:
        found = connection.sql(NESTED).to_arrow_table()
        columns = nesting_arrays.Ranges(*(column.to_numpy() for column in found.columns))
        around.by_arrays(connection, capture_id, columns, events)
    nesting.drop(connection)


def _last_ns(connection: duckdb.DuckDBPyConnection, capture_id: int) -> int:
    """Return when ranges still open are taken to end: at the last time that ranges and marks tell.

    A source whose file tells more of them than this capture holds says so in the metadata.
    """
    ((last_ns,),) = connection.execute(
        """SELECT coalesce(max(greatest(a.start_ns, a.start_ns + a.duration_ns, c.last_ns)), 0)
        FROM annotation_in AS a
        CROSS JOIN (
            SELECT CASE WHEN json_valid(metadata)
                THEN TRY_CAST(metadata ->> '$.last_annotation_ns' AS BIGINT) END AS last_ns
            FROM main.capture WHERE capture_id = ?
        ) AS c""",
        [capture_id],
    ).fetchall()
    return int(last_ns)
