"""Small numbers of events and calls kept in memory give the same results as queries."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pyarrow as pa
import pytest

from tracedb.derive import annotation_kernel, event_buffer
from tracedb.storage import schema

EVENTS = pa.table(
    {
        "event_id": [1, 2, 3, 4, 5],
        "launch_id": [11, None, 12, 11, 99],
        "kind": pa.array(["kernel", "memcpy", "kernel", "kernel", "graph"]).dictionary_encode(),
        "start_ns": [30, 40, 20, 35, 50],
    }
)
LAUNCHES = pa.table(
    {"launch_id": [12, 11, 13], "start_ns": [5, 1, 9], "duration_ns": [2, 3, 4], "thread_id": [None, 7, 8]}
)


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(":memory:", config={"threads": 1}) as opened:
        opened.execute(schema.ddl())
        yield opened


def met(connection: duckdb.DuckDBPyConnection, given: list[tuple[str, pa.Table]]) -> event_buffer.Events:
    """Write rows, and have them taken."""
    found = event_buffer.Events()
    for table, rows in given:
        defaults = ", 'n' AS name, 1 AS duration_ns" if table == "kernel_event" else ", 'n' AS name"
        connection.execute(f"INSERT INTO main.{table} BY NAME SELECT 1 AS capture_id, *{defaults} FROM rows")
        found.take(table, rows, rows.num_rows)
    return found


def called(connection: duckdb.DuckDBPyConnection, found: event_buffer.Events) -> list[tuple[object, ...]]:
    return sorted(
        row
        for calls in annotation_kernel._calls(connection, 1, found)
        for row in zip(*(calls[name].tolist() for name in sorted(calls)), strict=True)
    )


@pytest.mark.parametrize(
    "given",
    [
        [("kernel_event", EVENTS), ("launch", LAUNCHES)],
        [("launch", LAUNCHES), ("kernel_event", EVENTS.slice(0, 2)), ("kernel_event", EVENTS.slice(2))],
        [("kernel_event", EVENTS)],
        [("launch", LAUNCHES)],
        [],
    ],
)
def test_the_same_as_the_database_says(
    connection: duckdb.DuckDBPyConnection, given: list[tuple[str, pa.Table]], monkeypatch: pytest.MonkeyPatch
) -> None:
    held = met(connection, given)
    assert held.kernels == (3 if "kernel_event" in dict(given) else 0)
    by_held = called(connection, held)
    assert len(by_held) == (3 if len(dict(given)) == 2 else 5 if "kernel_event" in dict(given) else 0)
    connection.execute("DELETE FROM main.kernel_event")
    connection.execute("DELETE FROM main.launch")
    monkeypatch.setattr(event_buffer, "MOST", -1)
    read = met(connection, given)
    assert (read.count, read.launches) == (held.count, held.launches)
    if given:
        assert (read.calls(), read.kernels) == (None, None)
    assert called(connection, read) == by_held


@pytest.mark.parametrize("reason", ["many", "no integers"])
def test_others_are_not_held(connection: duckdb.DuckDBPyConnection, reason: str) -> None:
    rows = LAUNCHES
    if reason == "many":
        rows = pa.table({name: pa.concat_arrays(LAUNCHES[name].chunks * 2_000) for name in LAUNCHES.column_names})
    else:
        rows = LAUNCHES.set_column(1, "start_ns", LAUNCHES["start_ns"].cast(pa.float64()))
    found = met(connection, [("kernel_event", EVENTS), ("launch", rows)])
    assert found.calls() is None
