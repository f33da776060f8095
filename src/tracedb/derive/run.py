"""Facts too dear for a view, worked out once at load: nesting of ranges, and the range around each GPU event."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import duckdb
import numpy as np

from tracedb.derive import annotation_kernel, time_faults
from tracedb.derive.annotation_buffer import NO_RANGES, Annotations
from tracedb.derive.event_buffer import Events
from tracedb.intervals import nesting, nesting_arrays, small_nesting

if TYPE_CHECKING:
    from tracedb.derive.clipped_event import Passing

INSERT_ANNOTATIONS = """
INSERT INTO main.annotation BY NAME
SELECT ? AS capture_id, a.* REPLACE (n.parent_id AS parent_id, n.depth AS depth)
FROM annotation_in AS a LEFT JOIN nest_out AS n ON a.annotation_id = n.item_id
"""
NESTED = """
SELECT lane_b, start_ns, end_ns, item_id, coalesce(parent_id, item_id), depth::BIGINT FROM nest_out
WHERE end_ns > start_ns
"""
RANGES = f"style NOT IN {NO_RANGES} AND (duration_ns IS NOT NULL OR is_open) AND time_fault IS NULL"


def finish(
    connection: duckdb.DuckDBPyConnection,
    capture_id: int,
    annotations: Annotations,
    events: Events,
    is_amd: bool,
    passing: Passing | None,
    time_bounds: Mapping[str, int],
) -> list[time_faults.Issue]:
    """Write the capture's annotations with parent and depth, its annotation_kernel and clipped_event rows.

    Inside its transaction, after all other rows of it. ``is_amd``: some device is AMD's; ``passing`` may know already
    which events are clipped; ``time_bounds`` are the bounds of times, in ns. What has times that cannot be true is
    marked first; returns the issues written about that.
    """
    issues = time_faults.mark(connection, capture_id, annotations, events, time_bounds)
    if is_amd:
        from tracedb.derive import clipped_event  # its arrays take time to import

        clipped_event.clip(connection, capture_id, passing)
    ranges = annotations.few()
    nested = small_nesting.nest(ranges) if ranges is not None else None
    if nested is None:
        annotations.into_table()
        _nest_many(connection, capture_id, events)
    else:
        annotations.write(capture_id, nested)
        if nested and events.count:
            annotation_kernel.by_arrays(connection, capture_id, _columns(nested), events)
    annotations.drop()
    return issues


def _columns(nested: Sequence[small_nesting.Nested]) -> nesting_arrays.Ranges:
    rows = [(*item, parent.number if parent else item.number, depth) for item, parent, depth in nested]
    return nesting_arrays.Ranges(*np.array(rows, np.int64).T)


def _nest_many(connection: duckdb.DuckDBPyConnection, capture_id: int, events: Events) -> None:
    """Nest ranges and find those around events, however many there are."""
    crossing = nesting.nest(
        connection,
        f"""SELECT annotation_id AS item_id, 0 AS lane_a, coalesce(thread_id, -1) AS lane_b, start_ns,
            coalesce(start_ns + duration_ns, {_last_ns(connection, capture_id)}) AS end_ns, annotation_id AS tie
        FROM annotation_in WHERE {RANGES} AND annotation_id IS NOT NULL AND start_ns IS NOT NULL""",
    )
    connection.execute(INSERT_ANNOTATIONS, [capture_id])
    ((ranges,),) = connection.execute("SELECT count(*) FROM nest_out").fetchall()
    if crossing or ranges > nesting_arrays.MOST:
        annotation_kernel.by_statements(connection, capture_id, events, crossing)
    elif events.count:
        found = connection.sql(NESTED).to_arrow_table()
        columns = nesting_arrays.Ranges(*(column.to_numpy() for column in found.columns))
        annotation_kernel.by_arrays(connection, capture_id, columns, events)
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
        ) AS c
        WHERE a.time_fault IS NULL""",
        [capture_id],
    ).fetchall()
    return int(last_ns)
