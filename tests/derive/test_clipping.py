"""Events clipped at the next start on their queue: the same result as a plain loop, for random events."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.examples import MORE
from support.rows import insert
from tracedb.derive import clipped_event
from tracedb.storage import schema
from tracedb.storage.connection import STORAGE

Event = tuple[int, int, int | None, int | None, int | None]
EVENTS = st.lists(
    st.tuples(
        st.integers(0, 12),  # start
        st.integers(0, 9),  # duration
        st.sampled_from([0, 1, 2, None]),  # device; the third is NVIDIA's
        st.sampled_from([None, 4, 5, 1 << 40]),  # queue
        st.sampled_from([None, 1, 2]),  # stream
    ),
    max_size=25,
)

PLAIN = st.lists(
    st.tuples(st.integers(0, 12), st.integers(0, 9), st.just(1), st.sampled_from([4, 5, 9]), st.none()), max_size=25
)
"""All on one device and in queues."""


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(":memory:") as connection:
        schema.apply(connection, "test")
        insert(connection, "device", "device_id vendor", (0, "AMD"), (1, "AMD"), (2, "NVIDIA"), capture_id=1)
        yield connection


def cut(events: list[Event]) -> list[tuple[int, int]]:
    """Return number and length of the events that are cut; they are numbered from 100."""
    found = []
    for number, (start, duration, device, queue, stream) in enumerate(events):
        if device not in (0, 1) or (queue is None and stream is None):
            continue
        lane = (device, queue, None if queue is not None else stream)
        later = [s for s, _, d, q, r in events if s > start and (d, q, None if q is not None else r) == lane]
        if later and duration > min(later) - start:
            found.append((100 + number, min(later) - start))
    return found


def clipped(database: duckdb.DuckDBPyConnection) -> list[tuple[int, int]]:
    return database.execute("SELECT event_id, clipped_duration_ns FROM main.clipped_event ORDER BY ALL").fetchall()


@settings(max_examples=50 * MORE, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(events=EVENTS | PLAIN, rows=st.sampled_from([1, 3, 1 << 20]))
def test_any_events(
    database: duckdb.DuckDBPyConnection,
    events: list[Event],
    rows: int,
) -> None:
    database.execute("DELETE FROM main.kernel_event; DELETE FROM main.clipped_event")
    insert(
        database,
        "kernel_event",
        "event_id start_ns duration_ns device_id queue_id stream_id",
        *((100 + number, *event) for number, event in enumerate(events)),
        capture_id=1,
        kind="kernel",
        name="k",
    )
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(clipped_event, "BATCH_ROWS", rows)
        clipped_event.clip(database, 1)
    assert clipped(database) == cut(events)


def test_other_captures_are_left_alone(database: duckdb.DuckDBPyConnection) -> None:
    database.execute("DELETE FROM main.kernel_event; DELETE FROM main.clipped_event")
    clipped_event.clip(database, 2)
    assert database.execute("SELECT count(*) FROM main.clipped_event").fetchone() == (0,)


def clipping(events: list[Event], rows: int, held: int) -> clipped_event.IncrementalClipping:
    """Give it the events, ``rows`` at a time, with ``held`` of them held back."""
    found = clipped_event.IncrementalClipping()
    names = ("start_ns", "duration_ns", "device_id", "queue_id", "stream_id")
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(clipped_event, "HELD", held)
        for first in range(0, len(events), rows):
            taken = events[first : first + rows]
            values = zip(*taken, strict=True)
            columns = {name: pa.array(column, pa.int64()) for name, column in zip(names, values, strict=True)}
            columns["event_id"] = pa.array(range(100 + first, 100 + first + len(taken)), pa.int64())
            found.take(pa.table(columns))
    return found


class TestIncrementalClipping:
    @settings(max_examples=100 * MORE, deadline=None)
    @given(
        events=PLAIN | EVENTS,
        rows=st.sampled_from([1, 3, 7, 100]),
        held=st.sampled_from([1, 4, 100]),
        is_sorted=st.booleans(),
    )
    def test_any_events(self, events: list[Event], rows: int, held: int, is_sorted: bool) -> None:
        if is_sorted:
            events.sort(key=lambda event: event[0])
        found = clipping(events, rows, held)
        if is_sorted and all(device is not None and queue in (4, 5, 9) for _, _, device, queue, _ in events):
            assert found.is_whole
        if found.is_whole:
            numbers, lengths = found.finish()
            mine = [event if event[2] != 2 else (*event[:2], 0, 100 + (event[3] or 0), None) for event in events]
            assert list(zip(numbers.tolist(), lengths.tolist(), strict=True)) == cut(mine)

    def test_events_that_come_late(self) -> None:
        events: list[Event] = [(start, 15, 0, 4, None) for start in (0, 10, 30, 20, 40)]
        assert clipping(events, 2, held=2).is_whole
        assert not clipping(events, 1, held=1).is_whole

    def test_is_not_asked_where_a_device_is_not_of_amd(self, database: duckdb.DuckDBPyConnection) -> None:
        database.execute("DELETE FROM main.kernel_event; DELETE FROM main.clipped_event")
        clipped_event.clip(database, 1, clipping([(0, 9, 2, 4, None), (5, 9, 2, 4, None)], 9, 9))
        assert clipped(database) == []
        clipped_event.clip(database, 1, clipping([(0, 9, 1, 4, None), (5, 9, 1, 4, None)], 9, 9))
        assert clipped(database) == [(100, 5)]


def test_many_events_of_two_devices_however_they_are_read(tmp_path: Path) -> None:
    """Several threads read row groups in any order: what is cut and to how long must come from one reading."""
    with duckdb.connect(":memory:", config={"threads": 2}) as connection:
        connection.execute(f"ATTACH '{tmp_path / 'x.duckdb'}' AS trace ({STORAGE})")
        connection.execute("USE trace")
        schema.apply(connection, "test")
        insert(connection, "device", "device_id", (0,), (1,), capture_id=1, vendor="AMD")
        connection.execute(
            """INSERT INTO main.kernel_event BY NAME
            SELECT 1 AS capture_id, i AS event_id, 'kernel' AS kind, 'k' AS name, i * 10 AS start_ns,
                1 + i * 7919 % 60 AS duration_ns, i % 2 AS device_id, i % 3 AS queue_id FROM range(250_000) AS r(i)"""
        )
        expected = connection.execute(
            """SELECT event_id, cut FROM (
                SELECT event_id, duration_ns, lead(start_ns) OVER (PARTITION BY device_id, queue_id ORDER BY start_ns)
                    - start_ns AS cut FROM main.kernel_event)
            WHERE duration_ns > cut ORDER BY event_id"""
        ).fetchall()
        for _ in range(4):
            connection.execute("BEGIN")
            clipped_event.clip(connection, 1)
            assert clipped(connection) == expected
            connection.execute("ROLLBACK")
