"""Facts too expensive for a view, derived once at load: nesting of ranges, ranges around events, overlaps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import duckdb

from tracedb.derive import annotation_kernel, time_faults
from tracedb.derive.annotation_buffer import INSERT_NESTED, RANGES, Annotations
from tracedb.derive.event_buffer import Events
from tracedb.intervals import native_nesting, nesting

if TYPE_CHECKING:
    from tracedb.derive.clipped_event import IncrementalClipping


def finish(
    connection: duckdb.DuckDBPyConnection,
    capture_id: int,
    annotations: Annotations,
    events: Events,
    is_amd: bool,
    clipping: IncrementalClipping | None,
    time_bounds: Mapping[str, int],
) -> list[time_faults.Issue]:
    """Write the capture's annotations with parent and depth, and its rows of the other derived tables.

    Runs in the capture's transaction, after all its other rows. ``is_amd``: some device is AMD's; ``clipping`` may
    already know the clipped events; ``time_bounds`` in ns. Impossible times are marked first; returns the issues
    written about them.
    """
    issues = time_faults.mark(connection, capture_id, annotations, events, time_bounds)
    if is_amd:
        from tracedb.derive import clipped_event  # imports numpy

        clipped_event.clip(connection, capture_id, clipping)
    if events.count:
        from tracedb.derive import overlapping_kernel  # imports numpy

        overlapping_kernel.find(connection, capture_id, events.count)
    nested = _nested(connection, capture_id, annotations)
    if nested is None:
        annotations.into_table()
        _nest_by_statements(connection, capture_id, events)
    else:
        annotations.write(capture_id, nested)
        if len(nested.depth) and events.count:
            annotation_kernel.by_arrays(connection, capture_id, nested, events)
    annotations.drop()
    if events.count:
        from tracedb.derive import critical_segment  # imports numpy

        critical_segment.find(connection, capture_id)
    return issues


def _nested(
    connection: duckdb.DuckDBPyConnection, capture_id: int, annotations: Annotations
) -> native_nesting.Nested | None:
    """Nest ranges with the compiled library; None if SQL is required."""
    if native_nesting.library() is None:
        return None
    ranges = annotations.ranges(lambda: _last_ns(connection, capture_id))
    return None if ranges is None else native_nesting.nested(ranges)


def _nest_by_statements(connection: duckdb.DuckDBPyConnection, capture_id: int, events: Events) -> None:
    """Nest ranges and find those around events, for any number of ranges, crossing or not."""
    last_ns = _last_ns(connection, capture_id)
    crossing = nesting.nest(
        connection,
        f"""SELECT annotation_id AS item_id, 0 AS lane_a, lane AS lane_b, start_ns, end_ns, annotation_id AS tie
        FROM ({RANGES.format(last_ns=last_ns)}) WHERE annotation_id IS NOT NULL AND start_ns IS NOT NULL""",
    )
    connection.execute(INSERT_NESTED, [capture_id])
    annotation_kernel.by_statements(connection, capture_id, events, crossing)
    nesting.drop(connection)


def _last_ns(connection: duckdb.DuckDBPyConnection, capture_id: int) -> int:
    """Return the end assumed for ranges still open: the last time of any range or mark.

    A source whose file has later ones than this capture says so in the metadata.
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
