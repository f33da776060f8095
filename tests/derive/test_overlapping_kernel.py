"""Kernels that overlap an earlier one on their stream, for random kernels and slices, against a plain loop."""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter

import duckdb
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.examples import MORE
from support.rows import insert
from tracedb.derive import overlapping_kernel, time_faults
from tracedb.storage import schema

Kernel = tuple[int, int, int, int | None, int | None]
KERNELS = st.lists(
    st.tuples(
        st.integers(-3, 12),  # start
        st.integers(0, 9),  # duration
        st.sampled_from([0, 1]),  # device
        st.sampled_from([None, None, 4, 1 << 40]),  # queue
        st.sampled_from([None, 1, 2]),  # stream
    ),
    max_size=25,
)


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(":memory:") as connection:
        schema.apply(connection, "test")
        yield connection


def plain(kernels: list[Kernel]) -> list[int]:
    """Return the numbers of those that overlap; they are numbered from 100."""
    ends: dict[object, int] = {}
    found = []
    numbered = [(k[0], 100 + place, k) for place, k in enumerate(kernels)]
    for start, number, (_, duration, device, queue, stream) in sorted(numbered, key=itemgetter(0, 1)):
        key = (device, queue, None if queue is not None else stream)
        if duration and ends.get(key, start) > start:
            found.append(number)
        ends[key] = max(ends.get(key, start), start + duration)
    return sorted(found)


def overlapping(database: duckdb.DuckDBPyConnection) -> list[int]:
    rows = database.execute("SELECT event_id FROM main.overlapping_kernel WHERE capture_id = 1 ORDER BY 1").fetchall()
    return [number for (number,) in rows]


@given(KERNELS, st.sampled_from([2, 3, 7, 1 << 19]))
@settings(max_examples=25 * MORE, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_kernels(
    database: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch, kernels: list[Kernel], size: int
) -> None:
    database.execute("DELETE FROM main.kernel_event; DELETE FROM main.overlapping_kernel")
    rows = [(100 + place, *kernel) for place, kernel in enumerate(kernels)]
    insert(database, "kernel_event", "event_id start_ns duration_ns device_id queue_id stream_id", *rows,
           capture_id=1, kind="kernel", name="add")  # fmt: skip
    with monkeypatch.context() as patch:
        patch.setattr(overlapping_kernel, "SLICE", size)
        overlapping_kernel.find(database, 1, len(kernels))
    assert overlapping(database) == plain(kernels)


def test_only_kernels_of_the_capture_with_true_times(database: duckdb.DuckDBPyConnection) -> None:
    database.execute("DELETE FROM main.kernel_event; DELETE FROM main.overlapping_kernel")
    columns = "capture_id event_id kind start_ns duration_ns time_fault"
    insert(database, "kernel_event", columns, (1, 1, "kernel", 0, 99, "too_long"), (1, 2, "memcpy", 0, 99, None),
           (2, 3, "kernel", 0, 99, None), (1, 4, "kernel", 5, 2, None), (1, 5, "kernel", 6, 2, None),
           name="add", device_id=0, stream_id=7)  # fmt: skip
    overlapping_kernel.find(database, 1, 4)
    assert overlapping(database) == [5]


def test_found_again_when_times_are_judged_again(database: duckdb.DuckDBPyConnection) -> None:
    database.execute("DELETE FROM main.kernel_event; DELETE FROM main.overlapping_kernel; DELETE FROM main.capture")
    insert(database, "capture", "capture_id source", (1, "nsys"))
    insert(database, "kernel_event", "event_id start_ns duration_ns time_fault", (1, 0, 99, "too_long"),
           (2, 5, 2, None), capture_id=1, kind="kernel", name="add", device_id=0, stream_id=7)  # fmt: skip
    time_faults.renew(database, even_if_unchanged=True)
    assert overlapping(database) == [2]


def test_streams_whose_short_numbers_are_equal_are_kept_apart() -> None:
    lane = np.array([1, 1 + (1 << 16), 1, 1 + (1 << 16)], np.uint64)
    assert overlapping_kernel._by_lane(lane).tolist() == [0, 2, 1, 3]
