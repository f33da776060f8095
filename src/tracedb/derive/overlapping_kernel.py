"""Kernels that start before an earlier kernel of their stream has ended.

Programmatic dependent launch and graph branches make that normal; it is why busy time is a union and never a sum. On
AMD, where the tool numbers streams without end, the hardware queue stands for the stream. A kernel of no length
overlaps nothing. Derived once at load, since a view would sort all kernels before it could show the first one.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

SLICE = 1 << 18
"""Kernels in memory at a time, about."""
TIMES = "e.start_ns, e.start_ns + e.duration_ns AS end_ns"
LANES = (
    "hash(e.device_id, e.context_id, e.queue_id, CASE WHEN e.queue_id IS NULL THEN e.stream_id END) AS lane, e.event_id"
)
KERNELS = "FROM main.kernel_event AS e WHERE e.capture_id = {capture} AND e.kind = 'kernel' AND e.time_fault IS NULL"
BORDERS = """
SELECT DISTINCT e.start_ns
FROM main.kernel_event AS e
WHERE e.capture_id = ? AND e.event_id % ? = 0
ORDER BY e.start_ns
"""
Numbers = npt.NDArray[np.int64]


class _Kernels(NamedTuple):
    """Times, streams and numbers of kernels."""

    start: Numbers
    end: Numbers
    lane: npt.NDArray[np.uint64]
    event_id: Numbers

    def at(self, chosen: npt.NDArray[Any]) -> _Kernels:
        return _Kernels(*(array[chosen] for array in self))


def find(connection: duckdb.DuckDBPyConnection, capture_id: int, events: int) -> None:
    """Write the capture's ``overlapping_kernel`` rows. Inside its transaction, after impossible times are marked.

    ``events``: number of its GPU events.
    """
    numbers = np.concatenate([np.empty(0, np.int64), *_found(connection, capture_id, events)])
    if len(numbers):
        # A kernel still running at the end of a slice is looked at again in the next one.
        rows = pa.table({"event_id": np.unique(numbers)})  # noqa: F841 - found by name
        connection.execute(
            "INSERT INTO main.overlapping_kernel BY NAME SELECT ?::INTEGER AS capture_id, * FROM rows", [capture_id]
        )


def renew(connection: duckdb.DuckDBPyConnection) -> None:
    """Find them again in all captures of the file. Call inside a transaction."""
    connection.execute("DELETE FROM main.overlapping_kernel")
    counts = connection.execute(
        "SELECT capture_id, count(*) FROM main.kernel_event GROUP BY capture_id ORDER BY capture_id"
    ).fetchall()
    for capture_id, events in counts:
        find(connection, capture_id, events)


def _found(connection: duckdb.DuckDBPyConnection, capture_id: int, events: int) -> Iterator[Numbers]:
    """Yield the numbers of kernels that overlap, for one span of time after another."""
    borders: list[int | None] = [None]
    if events > SLICE:
        borders += [start for (start,) in connection.execute(BORDERS, [capture_id, SLICE]).fetchall()]
    running: _Kernels | None = None
    """Kernels of earlier spans that have not ended when the span begins."""
    for low, high in pairwise([*borders, None]):
        source = KERNELS.format(capture=int(capture_id))
        source += f" AND e.start_ns >= {low}" if low is not None else ""
        source += f" AND e.start_ns < {high}" if high is not None else ""
        if events > SLICE and running is None and _follow_each_other(_read(connection, TIMES, source), high):
            continue
        kernels = _Kernels(*_read(connection, f"{TIMES}, {LANES}", source))
        if running is not None:
            kernels = _Kernels(*(np.concatenate(arrays) for arrays in zip(running, kernels, strict=True)))
        if not bool((kernels.start[1:] > kernels.start[:-1]).all()):
            kernels = kernels.at(np.lexsort((kernels.event_id, kernels.start)))
        yield _overlapping(kernels)
        if high is not None:
            running = kernels.at(kernels.end > high)
            running = running if len(running.end) else None


def _read(connection: duckdb.DuckDBPyConnection, columns: str, source: str) -> list[npt.NDArray[Any]]:
    return [column.to_numpy() for column in connection.sql(f"SELECT {columns} {source}").to_arrow_table().columns]


def _follow_each_other(times: list[Numbers], high: int | None) -> bool:
    """Whether no two kernels of any streams overlap, and none runs on after ``high``: common with one stream."""
    start, end = times
    if not bool((start[1:] >= start[:-1]).all()):
        order = np.argsort(start, kind="stable")
        start, end = start[order], end[order]
    return not _starts_early(start, end).any() and (high is None or not len(end) or int(end[-1]) <= high)


def _overlapping(kernels: _Kernels) -> Numbers:
    """Return the numbers of those that overlap an earlier one of their stream; all are in order."""
    order = _by_lane(kernels.lane)
    start, end, lane = kernels.start[order], kernels.end[order], kernels.lane[order]
    found = []
    for low, high in pairwise([0, *_borders(lane).tolist(), len(lane)]):
        starts, ends = start[low:high], end[low:high]
        early = np.flatnonzero(_starts_early(starts, ends) & (ends[1:] > starts[1:]))
        found.append(kernels.event_id[order[low + 1 + early]])
    return np.concatenate(found)


def _starts_early(start: Numbers, end: Numbers) -> npt.NDArray[np.bool_]:
    """Return for each but the first whether it starts before the latest end so far."""
    early: npt.NDArray[np.bool_] = np.maximum.accumulate(end)[:-1] > start[1:]
    return early


def _by_lane(lane: npt.NDArray[np.uint64]) -> npt.NDArray[np.intp]:
    """Return the order that brings the kernels of each stream together and keeps their order."""
    short = lane.astype(np.uint16)  # numbers of 16 bits sort fastest
    order = np.argsort(short, kind="stable")
    if len(_borders(lane[order])) == len(_borders(short[order])):
        return order
    return np.argsort(lane, kind="stable")


def _borders(lane: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
    return np.flatnonzero(lane[1:] != lane[:-1]) + 1
