"""A capture's GPU work, API calls and host activity as arrays, sorted by start."""

from __future__ import annotations

from typing import Any, NamedTuple

import duckdb
import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
NONE = -1
"""No event, call or stream."""
OTHER, SYNCHRONIZE, STREAM_WAIT, COPY = range(4)
"""What an API call does, as far as it matters here."""
POLLS = ("query",)
WORDS = (
    (STREAM_WAIT, ("streamwaitevent", "streamwaitvalue")),
    (SYNCHRONIZE, ("synchronize", "cudafree", "cumemfree", "hipfree", "hipdevicesync")),
    (COPY, ("memcpy",)),
)
"""Words in the names of calls, ignoring case; the first that fits decides."""
NOT_BLOCKING = ("freeasync", "freehost", "freearray")


class Gpu(NamedTuple):
    """GPU events with plausible times, by start."""

    event_id: Numbers
    start: Numbers
    end: Numbers
    lane: Numbers
    """Number of its stream (AMD: hardware queue), from 0."""
    call: Numbers
    """Place of its launch among the calls, or ``NONE``."""
    device: Numbers
    """Number of the device, or ``NONE``."""


class Calls(NamedTuple):
    """API calls by start."""

    launch_id: Numbers
    correlation: Numbers
    thread: Numbers
    start: Numbers
    end: Numbers
    kind: Numbers


class Waits(NamedTuple):
    """Recorded synchronizations."""

    is_stream_wait: Mask
    correlation: Numbers
    record: Numbers
    """Correlation id of the call that recorded the awaited event, or ``NONE``."""
    stream: Numbers
    waited_stream: Numbers
    start: Numbers


class Activity(NamedTuple):
    """Operators that no other contains, or ranges: on which thread and when."""

    number: Numbers
    thread: Numbers
    start: Numbers
    end: Numbers
    parent: Numbers
    depth: Numbers
    step: Numbers
    """Number of the step that a range marks, or ``NONE``."""


class Recorded(NamedTuple):
    """All of a capture that the critical path needs."""

    gpu: Gpu
    calls: Calls
    waits: Waits
    ops: Activity
    ranges: Activity
    lane_streams: Numbers
    """Stream number of each lane."""


def read(connection: duckdb.DuckDBPyConnection, capture_id: int) -> Recorded:
    """Read a capture of the current catalog."""
    calls = Calls(*_columns(connection, CALLS.format(kind=_kinds(connection, capture_id)), capture_id))
    columns = _columns(connection, GPU, capture_id)
    event_id, start, end, launch, lane, stream, device = columns
    lanes, first, number = np.unique(lane, return_index=True, return_inverse=True)
    gpu = Gpu(event_id, start, end, number.reshape(-1).astype(np.int64), _places(calls.launch_id, launch), device)
    waits = _columns(connection, WAITS, capture_id)
    return Recorded(
        gpu,
        calls,
        Waits(waits[1].astype(np.bool_), *waits[2:]),
        Activity(*_columns(connection, OPS, capture_id)),
        Activity(*_columns(connection, RANGES, capture_id)),
        stream[first] if len(lanes) else np.empty(0, np.int64),
    )


GPU = """
SELECT
    e.event_id, e.start_ns, e.start_ns + e.duration_ns AS end_ns, coalesce(e.launch_id, -1) AS launch_id,
    (hash(e.device_id, e.context_id, coalesce(e.queue_id, e.stream_id)) >> 1)::BIGINT AS lane,
    coalesce(e.stream_id, -1) AS stream_id, coalesce(e.device_id, -1) AS device_id
FROM main.kernel_event AS e
WHERE e.capture_id = ? AND e.time_fault IS NULL
"""
CALLS = """
SELECT
    l.launch_id, coalesce(l.correlation_id, -1) AS correlation_id, coalesce(l.thread_id, -1) AS thread_id,
    l.start_ns, l.start_ns + l.duration_ns AS end_ns, {kind} AS kind
FROM main.launch AS l
WHERE l.capture_id = ? AND l.time_fault IS NULL
"""
WAITS = """
SELECT
    s.sync_id, (s.kind = 'stream_wait')::BIGINT AS is_stream_wait, coalesce(s.correlation_id, -1) AS correlation_id,
    coalesce(s.record_correlation_id, -1) AS record, coalesce(s.stream_id, -1) AS stream_id,
    coalesce(s.waited_stream_id, -1) AS waited_stream_id, s.start_ns
FROM main.synchronization AS s
WHERE s.capture_id = ?
"""
OPS = """
SELECT
    o.op_id, coalesce(o.thread_id, -1) AS thread_id, o.start_ns, o.start_ns + o.duration_ns AS end_ns,
    -1::BIGINT AS parent_id, 0::BIGINT AS depth, -1::BIGINT AS step
FROM main.op AS o
WHERE o.capture_id = ? AND o.parent_op_id IS NULL
"""
RANGES = """
SELECT
    a.annotation_id, coalesce(a.thread_id, -1) AS thread_id, a.start_ns, a.start_ns + a.duration_ns AS end_ns,
    coalesce(a.parent_id, -1) AS parent_id, coalesce(a.depth, 0)::BIGINT AS depth,
    CASE WHEN a.name LIKE 'ProfilerStep#%' THEN coalesce(TRY_CAST(substr(a.name, 14) AS BIGINT), -1) ELSE -1 END AS step
FROM main.annotation AS a
WHERE a.capture_id = ? AND a.style IN ('push_pop', 'user') AND a.duration_ns IS NOT NULL AND a.time_fault IS NULL
"""


def _columns(connection: duckdb.DuckDBPyConnection, query: str, capture_id: int) -> list[Any]:
    """Return the columns of a query, by start; of equal starts, by number, which is the first column."""
    found = connection.execute(query, [capture_id]).fetchnumpy()
    columns = [np.ma.getdata(column).astype(np.int64, copy=False) for column in found.values()]
    start, number = columns[list(found).index("start_ns")], columns[0]
    if not bool((start[1:] > start[:-1]).all()):
        order = np.lexsort((number, start))
        columns = [column[order] for column in columns]
    return columns


def _kinds(connection: duckdb.DuckDBPyConnection, capture_id: int) -> str:
    """Return SQL for the kind of a call: names are compared once each."""
    rows = connection.execute("SELECT DISTINCT l.name FROM main.launch AS l WHERE l.capture_id = ?", [capture_id])
    names: dict[int, list[str]] = {}
    for (name,) in rows.fetchall():
        if kind := _kind(name):
            names.setdefault(kind, []).append("'" + name.replace("'", "''") + "'")
    cases = [f"WHEN l.name IN ({', '.join(sorted(listed))}) THEN {kind}" for kind, listed in sorted(names.items())]
    return f"(CASE {' '.join(cases)} ELSE {OTHER} END)::BIGINT" if cases else f"{OTHER}::BIGINT"


def _kind(name: str) -> int:
    small = name.lower()
    if any(word in small for word in (*POLLS, *NOT_BLOCKING)):
        return OTHER
    return next((kind for kind, words in WORDS if any(word in small for word in words)), OTHER)


def _places(ids: Numbers, wanted: Numbers) -> Numbers:
    """Return the place of each wanted id, or ``NONE``."""
    if not len(ids):
        return np.full(len(wanted), NONE, np.int64)
    order = np.argsort(ids, kind="stable")
    found = order[np.minimum(np.searchsorted(ids, wanted, sorter=order), len(ids) - 1)]
    return np.where((wanted >= 0) & (ids[found] == wanted), found, NONE)


def places_of_calls(calls: Calls, correlations: Numbers) -> Numbers:
    """Return the place of the call with each correlation id, or ``NONE``; of several, the last to start."""
    return _places(calls.correlation, correlations)
