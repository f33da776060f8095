"""The critical path of each step of a capture, derived once at load: fills ``main.critical_segment``.

A view could not follow dependencies from event to event in reasonable time; ``tracedb.dependencies`` does, by arrays.
"""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa

from tracedb.dependencies import host_work, recorded_arrays, spans
from tracedb.dependencies.path import HOST, KINDS, SYNC, UNKNOWN, Graph, Segments, Span
from tracedb.dependencies.recorded_arrays import NONE, Numbers

COLUMNS = ("step", "event_id", "launch_id", "op_id", "annotation_id", "thread_id", "slack_ns")
"""Columns that may be NULL."""


def find(connection: duckdb.DuckDBPyConnection, capture_id: int) -> None:
    """Write the capture's rows. Inside its transaction, after annotations and impossible times."""
    graph = Graph(recorded_arrays.read(connection, capture_id))
    rows = of_spans(graph, spans.of_steps(graph))
    if rows is not None:
        connection.execute(
            "INSERT INTO main.critical_segment BY NAME SELECT ?::INTEGER AS capture_id, * FROM rows", [capture_id]
        )


def renew(connection: duckdb.DuckDBPyConnection) -> None:
    """Find the paths of all captures of the file again. Call inside a transaction."""
    connection.execute("DELETE FROM main.critical_segment")
    for (capture_id,) in connection.execute("SELECT capture_id FROM main.capture ORDER BY capture_id").fetchall():
        find(connection, capture_id)


def of_spans(graph: Graph, given: list[Span]) -> pa.Table | None:
    """Return the rows of the paths of some spans; None if there is no segment."""
    works: dict[int, host_work.Work] = {}
    parts: list[dict[str, Numbers]] = []
    for span in given:
        parts += _parts(graph, span, graph.path(span), works)
    return _table(parts)


def of_path(graph: Graph, span: Span, path: Segments, works: dict[int, host_work.Work]) -> pa.Table | None:
    """Return the rows of a path that was found; None if there is no segment. ``works`` is filled as needed."""
    return _table(_parts(graph, span, path, works))


def _table(parts: list[dict[str, Numbers]]) -> pa.Table | None:
    if not parts:
        return None
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    kind = columns.pop("kind").astype(np.int8)
    return pa.table(
        {
            "kind": pa.DictionaryArray.from_arrays(kind, pa.array(KINDS)),
            **{name: _column(column) if name in COLUMNS else column for name, column in columns.items()},
        }
    )


def _column(values: Numbers) -> pa.Array:
    """Return a column with NULL for ``NONE``."""
    there = np.packbits(values >= 0, bitorder="little")
    return pa.Array.from_buffers(pa.int64(), len(values), [pa.py_buffer(there), pa.py_buffer(values)])


def _parts(graph: Graph, span: Span, path: Segments, works: dict[int, host_work.Work]) -> list[dict[str, Numbers]]:
    """Return the columns of one path, in parts; host work is split where the operator or the range changes."""
    parts: list[dict[str, Numbers]] = []
    last = 0
    for place in np.flatnonzero(path.kind == HOST).tolist():
        parts.append(_whole(graph, path, slice(last, place)))
        thread = int(path.item[place])
        if thread not in works:
            works[thread] = host_work.of_thread(graph.recorded, thread)
        parts.append(_host(works[thread], thread, int(path.start[place]), int(path.end[place])))
        last = place + 1
    parts.append(_whole(graph, path, slice(last, None)))
    first = 0
    for part in parts:
        count = len(part["start_ns"])
        part["step"] = np.full(count, NONE if span.step is None else span.step)
        part["ordinal"] = np.arange(first, first + count)
        first += count
    return parts


def _whole(graph: Graph, path: Segments, which: slice) -> dict[str, Numbers]:
    """Return the segments of a slice without host work."""
    kind, item, start, end, slack = (column[which] for column in path)
    nothing = np.full(len(kind), NONE)
    gpu = graph.recorded.gpu
    is_gpu = (kind != SYNC) & (kind != UNKNOWN) & (item >= 0)
    return {
        "kind": kind,
        "event_id": np.where(is_gpu, gpu.event_id[np.where(is_gpu, item, 0)], NONE),
        "launch_id": _calls(graph, kind, item),
        "op_id": nothing,
        "annotation_id": nothing,
        "thread_id": nothing,
        "start_ns": start,
        "duration_ns": end - start,
        "slack_ns": slack,
    }


def _calls(graph: Graph, kind: Numbers, item: Numbers) -> Numbers:
    is_sync = kind == SYNC
    if not is_sync.any():
        return np.full(len(kind), NONE)
    return np.where(is_sync, graph.recorded.calls.launch_id[np.where(is_sync, item, 0)], NONE)


def _host(work: host_work.Work, thread: int, start: int, end: int) -> dict[str, Numbers]:
    """Return the pieces of a segment of host work."""
    starts, op, inner = host_work.pieces(work, start, end)
    nothing = np.full(len(starts), NONE)
    return {
        "kind": np.full(len(starts), HOST),
        "event_id": nothing,
        "launch_id": nothing,
        "op_id": op,
        "annotation_id": inner,
        "thread_id": np.full(len(starts), thread),
        "start_ns": starts,
        "duration_ns": np.diff(np.append(starts, end)),
        "slack_ns": nothing,
    }
