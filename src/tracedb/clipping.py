"""How long GPU events of AMD lasted if each ended when the next one of its queue started.

On ROCm a late completion timestamp can run far into the following kernels, which a sum of durations then counts again.
Found once at load: a view would sort all events for every report.
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
FEW = 32
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
"""The queues, where all events of the capture are in queues of one device: they need no join, which takes long."""


class _Events(NamedTuple):
    """The events of lanes: how many they are in all, and SQL for where they come from and which lane each is in."""

    total: int
    lanes: int
    source: str
    lane: str
    capture_id: int

    def batches(self, connection: duckdb.DuckDBPyConnection, columns: str) -> Iterator[pa.RecordBatch]:
        """Yield columns of all events, each time in one order."""
        # With a parameter it would be held in memory as a whole.
        found = connection.sql(f"SELECT {columns} FROM {self.source} WHERE e.capture_id = {int(self.capture_id)}")
        read = found.to_arrow_reader if hasattr(found, "to_arrow_reader") else found.fetch_arrow_reader  # in DuckDB 1.4
        yield from read(BATCH_ROWS)


def clip(connection: duckdb.DuckDBPyConnection, capture_id: int) -> None:
    """Write the capture's ``clipped_event`` rows. Inside its transaction, after all events and devices."""
    connection.execute(LANES, {"capture": capture_id})
    ((count, lanes),) = connection.execute(
        "SELECT coalesce(sum(events), 0)::BIGINT, count(*) FROM clip_lane"
    ).fetchall()
    if count:
        connection.execute("SET preserve_insertion_order = true")  # so that both passes give one order
        events = _Events(count, lanes, JOINED, "l.lane", capture_id)
        for low, high in connection.execute(PLAIN, {"capture": capture_id}).fetchall():
            events = _Events(count, high - low + 1, "main.kernel_event AS e", f"e.queue_id - {low}", capture_id)
        places, lengths = _cut(connection, events)
        if len(places):
            numbers = _event_ids(connection, events, places)
            cut = pa.table({"event_id": numbers, "clipped_duration_ns": lengths})  # noqa: F841 - found by name
            connection.execute(
                "INSERT INTO main.clipped_event BY NAME SELECT ?::INTEGER AS capture_id, * FROM cut", [capture_id]
            )
    connection.execute("DROP TABLE temp.clip_lane")


def _cut(connection: duckdb.DuckDBPyConnection, events: _Events) -> tuple[npt.NDArray[np.intp], Numbers]:
    """Return which events, by their place in the order of the batches, are cut, ascending, and to how many ns."""
    start, duration = np.empty(events.total, np.int64), np.empty(events.total, np.int64)
    lane = np.zeros(events.total, np.int16 if events.lanes < 1 << 14 else np.int32)
    first = 0
    for batch in events.batches(connection, f"e.start_ns, e.duration_ns, {events.lane}"):
        end = first + batch.num_rows
        for array, column in zip((start, duration, lane), batch.columns, strict=True):
            array[first:end] = column.to_numpy(zero_copy_only=False)
        first = end
    found = [_cut_lane(start, duration, mine) for mine in _places(lane, events.lanes)]
    places = np.concatenate([places for places, _ in found])
    order = np.argsort(places)
    return places[order], np.concatenate([lengths for _, lengths in found])[order]


def _places(lane: npt.NDArray[Any], lanes: int) -> Iterator[npt.NDArray[np.intp] | slice]:
    """Yield where the events of each lane are."""
    if lanes == 1:
        yield slice(None)
        return
    if lanes <= FEW:
        for number in range(lanes):
            yield np.flatnonzero(lane == number)
        return
    by_lane = np.argsort(lane, kind="stable")
    bounds = np.searchsorted(lane, np.arange(lanes + 1, dtype=lane.dtype), sorter=by_lane)
    for low, high in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        yield by_lane[low:high]


def _cut_lane(
    start: Numbers, duration: Numbers, mine: npt.NDArray[np.intp] | slice
) -> tuple[npt.NDArray[np.intp], Numbers]:
    """Return which events of a lane are cut and to how many ns: at the next start that is later than their own."""
    starts, lengths = start[mine], duration[mine]
    order: npt.NDArray[np.intp] | None = None
    if not bool((starts[1:] >= starts[:-1]).all()):
        order = np.argsort(starts, kind="stable")
        starts, lengths = starts[order], lengths[order]
    # Only what runs into the next event can be cut; events that start together are not cut by each other.
    candidates = np.flatnonzero(lengths[:-1] > starts[1:] - starts[:-1])
    following = np.searchsorted(starts, starts[candidates], side="right")
    has_one = following < len(starts)
    candidates, following = candidates[has_one], following[has_one]
    allowed = starts[following] - starts[candidates]
    is_cut = lengths[candidates] > allowed
    candidates, allowed = candidates[is_cut], allowed[is_cut]
    places = candidates if order is None else order[candidates]
    return (places if isinstance(mine, slice) else mine[places]), allowed


def _event_ids(connection: duckdb.DuckDBPyConnection, events: _Events, places: npt.NDArray[np.intp]) -> Numbers:
    """Return the numbers of the events at these places."""
    found = np.empty(len(places), np.int64)
    first = 0
    for batch in events.batches(connection, "e.event_id"):
        low, high = np.searchsorted(places, (first, first + batch.num_rows))
        found[low:high] = batch.column(0).to_numpy()[places[low:high] - first]
        first += batch.num_rows
    return found
