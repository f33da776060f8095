"""The durations of AMD GPU events if each ended when the next one in its queue started.

On ROCm a late completion timestamp can extend far into the following kernels, whose time a sum of durations then counts
twice. Derived once at load, since a view would sort all events for every report.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

Numbers = npt.NDArray[np.int64]
BATCH_ROWS = 1 << 17
HELD = 1 << 16
"""Events held back while rows are written, in case earlier ones arrive late."""
DEVICES, QUEUES = 32, 1024
"""Maximum number of lanes whose numbers fit 16 bits, which sort fastest."""
LANES = """
CREATE OR REPLACE TEMP TABLE clip_lane AS
SELECT
    e.device_id, e.queue_id, CASE WHEN e.queue_id IS NULL THEN e.stream_id END AS stream_id, count(*) AS events,
    row_number() OVER () - 1 AS lane
FROM main.kernel_event AS e
INNER JOIN main.device AS d ON d.capture_id = e.capture_id AND d.device_id = e.device_id AND d.vendor = 'AMD'
WHERE e.capture_id = $capture AND coalesce(e.queue_id, e.stream_id) IS NOT NULL
GROUP BY ALL
"""
JOINED = """
main.kernel_event AS e
INNER JOIN clip_lane AS l
    ON l.device_id = e.device_id AND l.queue_id IS NOT DISTINCT FROM e.queue_id
        AND l.stream_id IS NOT DISTINCT FROM CASE WHEN e.queue_id IS NULL THEN e.stream_id END
"""
PLAIN = """
SELECT min(l.queue_id), max(l.queue_id)
FROM clip_lane AS l
HAVING
    count(DISTINCT l.device_id) = 1 AND count(l.queue_id) = count(*) AND max(l.queue_id) - min(l.queue_id) < 10000
    AND sum(l.events) = (SELECT count(*) FROM main.kernel_event AS e WHERE e.capture_id = $capture)
"""
"""The queues, if all events of the capture are in queues of one device: this needs no slow join."""


class _Events(NamedTuple):
    """The events of lanes: their number, and SQL for their source and the lane of each."""

    total: int
    lanes: int
    source: str
    lane: str
    capture_id: int

    def batches(self, connection: duckdb.DuckDBPyConnection, columns: str) -> Iterator[pa.RecordBatch]:
        """Yield columns of all events; the order may differ between calls."""
        # A parameterised query would be materialised in memory.
        found = connection.sql(f"SELECT {columns} FROM {self.source} WHERE e.capture_id = {int(self.capture_id)}")
        read = found.to_arrow_reader if hasattr(found, "to_arrow_reader") else found.fetch_arrow_reader  # in DuckDB 1.4
        yield from read(BATCH_ROWS)


class IncrementalClipping:
    """Finds clipped events while rows are written, so that they need not be read back.

    Events arrive roughly ordered by start. Those that start before the latest ``HELD`` are final, except the last one
    of each lane, whose successor is still to come. ``is_whole``: every row so far could be handled.
    """

    def __init__(self) -> None:
        self.is_whole = True
        self.devices: set[int] = set()
        self._held = _LaneEvents(*(np.empty(0, kind) for kind in (np.int16, np.int64, np.int64, np.int64)))
        self._settled = np.iinfo(np.int64).min
        """Events that start before this are final."""
        self._found: list[tuple[Numbers, Numbers]] = []

    def take(self, rows: pa.Table) -> None:
        """Add the next rows of ``kernel_event``."""
        if not self.is_whole or not rows.num_rows:
            return
        events = self._lane_events(rows)
        if events is None or int(events.start.min()) < self._settled:
            self.is_whole = False
            self._held = self._held.at(slice(0))
            self._found.clear()
            return
        self._settled = int(events.start[-HELD:].min())
        self._settle(self._settled, self._held.and_then(events))

    def _lane_events(self, rows: pa.Table) -> _LaneEvents | None:
        """Return the needed columns, or None if some rows are in no queue, or in one with an unexpected number."""
        names = ("device_id", "queue_id", "start_ns", "duration_ns", "event_id")
        if any(name not in rows.column_names or rows[name].null_count for name in names):
            return None
        device, queue, *others = (rows[name].to_numpy() for name in names)
        if min(device.min(), queue.min()) < 0 or device.max() >= DEVICES or queue.max() >= QUEUES:
            return None
        self.devices.update(np.flatnonzero(np.bincount(device)).tolist())
        return _LaneEvents((device * QUEUES + queue).astype(np.int16), *others)

    def _settle(self, limit: int, events: _LaneEvents) -> None:
        """Clip the events that start before ``limit``, as no later row does; hold the others."""
        numbers = np.flatnonzero(np.bincount(events.lane))
        number_of = np.zeros(int(numbers[-1]) + 1, np.int16)
        number_of[numbers] = np.arange(len(numbers))
        held = []
        for mine in _places(number_of[events.lane], len(numbers)):
            lane = events.at(mine)
            if not bool((lane.start[1:] >= lane.start[:-1]).all()):
                lane = lane.at(np.argsort(lane.start, kind="stable"))
            end = int(np.searchsorted(lane.start, limit))
            last = int(np.searchsorted(lane.start, lane.start[end - 1])) if end else 0
            places, lengths = _cut_lane(lane.start, lane.duration, slice(0, last + 1))
            self._found.append((lane.event_id[places], lengths))
            held.append(lane.at(slice(last, None)))
        self._held = _joined(held)

    def finish(self) -> tuple[Numbers, Numbers]:
        """Return the numbers of the clipped events and their new durations in ns; no rows may follow."""
        if len(self._held.start):
            self._settle(int(self._held.start.max()) + 1, self._held)
        none = np.empty(0, np.int64)
        numbers = np.concatenate([none, *(numbers for numbers, _ in self._found)])
        lengths = np.concatenate([none, *(lengths for _, lengths in self._found)])
        order = np.argsort(numbers)
        return numbers[order], lengths[order]


class _LaneEvents(NamedTuple):
    """Lane, times and number of events."""

    lane: npt.NDArray[Any]
    start: npt.NDArray[Any]
    duration: npt.NDArray[Any]
    event_id: npt.NDArray[Any]

    def at(self, places: npt.NDArray[np.intp] | slice) -> _LaneEvents:
        return _LaneEvents(*(array[places] for array in self))

    def and_then(self, others: _LaneEvents) -> _LaneEvents:
        return _joined([self, others])


def _joined(parts: list[_LaneEvents]) -> _LaneEvents:
    return _LaneEvents(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def clip(connection: duckdb.DuckDBPyConnection, capture_id: int, clipping: IncrementalClipping | None = None) -> None:
    """Write the capture's ``clipped_event`` rows. Inside its transaction, after all events and devices.

    ``clipping`` has taken all events of the capture, if it is whole.
    """
    if clipping is not None and clipping.is_whole and clipping.devices <= _of_amd(connection, capture_id):
        _write(connection, capture_id, *clipping.finish())
        return
    connection.execute(LANES, {"capture": capture_id})
    ((count, lanes),) = connection.execute(
        "SELECT coalesce(sum(events), 0)::BIGINT, count(*) FROM clip_lane"
    ).fetchall()
    if count:
        events = _Events(count, lanes, JOINED, "l.lane", capture_id)
        for low, high in connection.execute(PLAIN, {"capture": capture_id}).fetchall():
            events = _Events(count, high - low + 1, "main.kernel_event AS e", f"e.queue_id - {low}", capture_id)
        _write(connection, capture_id, *_cut(connection, events))
    connection.execute("DROP TABLE temp.clip_lane")


def _of_amd(connection: duckdb.DuckDBPyConnection, capture_id: int) -> set[int]:
    """Return the AMD devices of the capture."""
    found = connection.execute(
        "SELECT device_id FROM main.device WHERE capture_id = ? AND vendor = 'AMD'", [capture_id]
    ).fetchall()
    return {device for (device,) in found}


def _write(connection: duckdb.DuckDBPyConnection, capture_id: int, numbers: Numbers, lengths: Numbers) -> None:
    if len(numbers):
        cut = pa.table({"event_id": numbers, "clipped_duration_ns": lengths})  # noqa: F841 - found by name
        connection.execute(
            "INSERT INTO main.clipped_event BY NAME SELECT ?::INTEGER AS capture_id, * FROM cut", [capture_id]
        )


def _cut(connection: duckdb.DuckDBPyConnection, events: _Events) -> tuple[Numbers, Numbers]:
    """Return the numbers of the clipped events, ascending, and their new durations in ns."""
    start, duration, number = (np.empty(events.total, np.int64) for _ in range(3))
    lane = np.zeros(events.total, np.int16 if events.lanes < 1 << 14 else np.int32)
    first = 0
    for batch in events.batches(connection, f"e.start_ns, e.duration_ns, e.event_id, {events.lane}"):
        end = first + batch.num_rows
        for array, column in zip((start, duration, number, lane), batch.columns, strict=True):
            array[first:end] = column.to_numpy(zero_copy_only=False)
        first = end
    found = [_cut_lane(start, duration, mine) for mine in _places(lane, events.lanes)]
    numbers = number[np.concatenate([places for places, _ in found])]
    order = np.argsort(numbers)
    return numbers[order], np.concatenate([lengths for _, lengths in found])[order]


def _places(lane: npt.NDArray[Any], lanes: int) -> Iterator[npt.NDArray[np.intp] | slice]:
    """Yield the indices of each lane's events."""
    if lanes == 1:
        yield slice(None)
        return
    by_lane = np.argsort(lane, kind="stable")
    bounds = np.searchsorted(lane, np.arange(lanes + 1, dtype=lane.dtype), sorter=by_lane)
    for low, high in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        yield by_lane[low:high]


def _cut_lane(
    start: Numbers, duration: Numbers, mine: npt.NDArray[np.intp] | slice
) -> tuple[npt.NDArray[np.intp], Numbers]:
    """Return which events of a lane are clipped and their new durations in ns: up to the next later start."""
    starts, lengths = start[mine], duration[mine]
    order: npt.NDArray[np.intp] | None = None
    if not bool((starts[1:] >= starts[:-1]).all()):
        order = np.argsort(starts, kind="stable")
        starts, lengths = starts[order], lengths[order]
    # Only events that overlap the next one are clipped; events with the same start do not clip each other.
    candidates = np.flatnonzero(lengths[:-1] > starts[1:] - starts[:-1])
    following = np.searchsorted(starts, starts[candidates], side="right")
    has_one = following < len(starts)
    candidates, following = candidates[has_one], following[has_one]
    allowed = starts[following] - starts[candidates]
    is_cut = lengths[candidates] > allowed
    candidates, allowed = candidates[is_cut], allowed[is_cut]
    places = candidates if order is None else order[candidates]
    return (places if isinstance(mine, slice) else mine[places]), allowed
