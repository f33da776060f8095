"""Statistics of GPU events and launches as they are written; small captures are kept to avoid re-querying."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tracedb.derive.arrow_rows import are_integers, column
from tracedb.derive.time_extent import Extent, extent
from tracedb.ingester.name_patterns import GRAPH_LAUNCH

MOST = 5_000
"""Rows kept in memory; for more, a query is faster than looking at each row."""
EVENT = ("event_id", "launch_id", "start_ns", "duration_ns")
LAUNCH = ("launch_id", "start_ns", "duration_ns", "thread_id")
Calls = dict[str, npt.NDArray[Any]]


class Events:
    """Statistics of the written rows of ``kernel_event`` and ``launch``."""

    def __init__(self) -> None:
        self.count = 0
        self.launches = 0
        self.graph_launches = 0
        """Number of calls that launch a graph; set once all rows are written."""
        self._events: list[tuple[int, int | None, int, int]] = []
        self._launches: dict[int, tuple[int, int, int | None]] = {}
        self._kernels = 0
        self._graph_launches = 0
        self._are_held = True

    def take(self, table: str, incoming: pa.RecordBatch | pa.Table | duckdb.DuckDBPyRelation, count: int) -> None:
        """Add ``count`` rows that have been written."""
        if table == "kernel_event":
            self.count += count
        else:
            self.launches += count
        names = EVENT if table == "kernel_event" else LAUNCH
        if not self._are_held or not count:
            return
        if (
            isinstance(incoming, duckdb.DuckDBPyRelation)
            or self.count + self.launches > MOST
            or not are_integers(incoming.schema, names)
        ):
            self._are_held = False
            self._events, self._launches = [], {}
            return
        rows = zip(*(column(incoming, name) for name in names), strict=True)
        if table == "kernel_event":
            self._events += rows
            self._kernels += column(incoming, "kind").count("kernel")
        else:
            self._launches.update((number, (start, duration, thread)) for number, start, duration, thread in rows)
            self._graph_launches += sum(GRAPH_LAUNCH in (name or "") for name in column(incoming, "name"))

    @property
    def kernels(self) -> int | None:
        """Number of kernels among the events; None if they are not held."""
        return self._kernels if self._are_held else None

    def least_latency(self) -> int | None:
        """Return the least time from a call to its event, in ns; None if none is held."""
        if not self._are_held:
            return None
        starts = ((start, self._launches.get(launch)) for _, launch, start, _ in self._events if launch is not None)
        return min((start - call[0] for start, call in starts if call is not None), default=None)

    def extents(self) -> tuple[Extent, Extent, int] | None:
        """Return the extents of events and of calls, and the number of graph launches; None if not held."""
        if not self._are_held:
            return None
        events = [(start, duration) for _, _, start, duration in self._events]
        calls = [(start, duration) for start, duration, _ in self._launches.values()]
        return extent(events), extent(calls), self._graph_launches

    def calls(self) -> Calls | None:
        """Return the calls of events that have one; without any call, the starts of all events; None if not held."""
        if not self._are_held:
            return None
        if not self.launches:
            numbers, starts = [event for event, *_ in self._events], [start for _, _, start, _ in self._events]
            return {"event_id": _array(numbers), "start_ns": _array(starts), "end_ns": _array(starts)}
        found = [(event, *self._launches[launch]) for event, launch, *_ in self._events if launch in self._launches]
        return {
            "event_id": _array([event for event, _, _, _ in found]),
            "start_ns": _array([start for _, start, _, _ in found]),
            "end_ns": _array([start + duration for _, start, duration, _ in found]),
            "thread_id": _array([thread or 0 for _, _, _, thread in found]),
            "has_thread": np.array([thread is not None for _, _, _, thread in found], np.bool_),
        }


def _array(numbers: list[int]) -> npt.NDArray[np.int64]:
    return np.array(numbers, np.int64)
