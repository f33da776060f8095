"""``main.critical_segment``: the path from the end of each step back to its beginning."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import duckdb
import pytest

from support import rows
from tracedb.derive import critical_segment
from tracedb.storage import schema

Insert = Callable[..., None]
Found = list[tuple[Any, ...]]
EVENT = "event_id kind name start_ns duration_ns stream_id launch_id"
CALL = "launch_id correlation_id name thread_id start_ns duration_ns"


@pytest.fixture(scope="module")
def made() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(":memory:") as connection:
        schema.apply(connection, "test")
        yield connection


@pytest.fixture
def db(made: duckdb.DuckDBPyConnection) -> Iterator[duckdb.DuckDBPyConnection]:
    made.execute("BEGIN")
    yield made
    made.execute("ROLLBACK")


@pytest.fixture
def insert(db: duckdb.DuckDBPyConnection) -> Insert:
    return partial(rows.insert, db, capture_id=1)


@pytest.fixture
def path(db: duckdb.DuckDBPyConnection) -> Callable[..., Found]:
    def found(columns: str = "kind, event_id, start_ns, duration_ns") -> Found:
        critical_segment.find(db, 1)
        spans = db.execute(
            """SELECT step, sum(duration_ns) = max(start_ns + duration_ns) - min(start_ns), count(*) = max(ordinal) + 1
               FROM main.critical_segment GROUP BY step"""
        ).fetchall()
        assert all(is_whole and is_numbered for _, is_whole, is_numbered in spans)
        return db.execute(f"SELECT {columns} FROM main.critical_segment ORDER BY step, ordinal").fetchall()

    return found


def test_launch_stream_and_synchronization(insert: Insert, path: Callable[..., Found]) -> None:
    """The host launches two kernels and waits for them; the second starts when the first ends."""
    insert("launch", CALL, (1, 1, "cudaLaunchKernel", 5, 0, 10), (2, 2, "cudaLaunchKernel", 5, 20, 10),
           (3, 3, "cudaDeviceSynchronize", 5, 40, 1_000))  # fmt: skip
    insert("kernel_event", EVENT, (1, "kernel", "a", 15, 500, 7, 1), (2, "kernel", "b", 520, 500, 7, 2))
    insert("op", "op_id name thread_id start_ns duration_ns", (1, "aten::mm", 5, 0, 35))
    assert path("kind, event_id, launch_id, op_id, start_ns, duration_ns") == [
        ("host", None, None, 1, 0, 10),
        ("launch", 1, None, None, 10, 5),
        ("gpu", 1, None, None, 15, 500),
        ("gap", 2, None, None, 515, 5),
        ("gpu", 2, None, None, 520, 500),
        ("sync", None, 3, None, 1_020, 20),
    ]


def test_a_kernel_on_an_empty_stream_waits_for_its_launch(insert: Insert, path: Callable[..., Found]) -> None:
    insert("launch", CALL, (1, 1, "cudaLaunchKernel", 5, 0, 10), (2, 2, "cudaLaunchKernel", 5, 900, 10))
    insert("kernel_event", EVENT, (1, "kernel", "a", 15, 500, 7, 1), (2, "kernel", "b", 920, 500, 7, 2))
    assert path() == [("host", None, 0, 910), ("launch", 2, 910, 10), ("gpu", 2, 920, 500)]


def test_steps_end_with_their_gpu_work(insert: Insert, path: Callable[..., Found]) -> None:
    """The second step's kernel waits for that of the first, which its path therefore holds, cut at the beginning."""
    insert("annotation", "annotation_id name style thread_id start_ns duration_ns depth",
           (1, "ProfilerStep#4", "user", 5, 0, 100, 0), (2, "ProfilerStep#5", "user", 5, 100, 100, 0),
           is_open=False)  # fmt: skip
    insert("launch", CALL, (1, 1, "cudaLaunchKernel", 5, 10, 10), (2, 2, "cudaLaunchKernel", 5, 110, 10))
    insert("kernel_event", EVENT, (1, "kernel", "a", 30, 20_000, 7, 1), (2, "kernel", "b", 20_030, 500, 7, 2))
    assert path("step, kind, event_id, start_ns, duration_ns") == [
        (4, "host", None, 0, 20),
        (4, "launch", 1, 20, 10),
        (4, "gpu", 1, 30, 20_000),
        (5, "gpu", 1, 100, 19_930),
        (5, "gpu", 2, 20_030, 500),
    ]


def test_recorded_wait_of_a_stream(insert: Insert, path: Callable[..., Found]) -> None:
    """Stream 9 awaits an event recorded after kernel 1 on stream 7, not kernel 2, which ended later."""
    insert("launch", CALL, (1, 1, "cudaLaunchKernel", 5, 0, 10), (2, 2, "cudaEventRecord", 5, 20, 5),
           (3, 3, "cudaLaunchKernel", 5, 30, 10), (4, 4, "cudaStreamWaitEvent", 5, 50, 5),
           (5, 5, "cudaLaunchKernel", 5, 60, 10))  # fmt: skip
    insert("kernel_event", EVENT, (1, "kernel", "a", 15, 5_000, 7, 1), (2, "kernel", "b", 5_015, 900, 7, 3),
           (3, "kernel", "c", 5_025, 9_000, 9, 5))  # fmt: skip
    insert("synchronization", "sync_id kind correlation_id start_ns duration_ns stream_id waited_stream_id "
           "record_correlation_id", (1, "stream_wait", 4, 51, 3, 9, 7, 2))  # fmt: skip
    assert path() == [
        ("host", None, 0, 10),
        ("launch", 1, 10, 5),
        ("gpu", 1, 15, 5_000),
        ("wait", 3, 5_015, 10),
        ("gpu", 3, 5_025, 9_000),
    ]


def test_wait_of_a_stream_for_an_unknown_event_is_inferred(insert: Insert, path: Callable[..., Found]) -> None:
    insert("launch", CALL, (1, 1, "cudaLaunchKernel", 5, 0, 10), (4, 4, "cudaStreamWaitEvent", 5, 50, 5),
           (5, 5, "cudaLaunchKernel", 5, 60, 10))  # fmt: skip
    insert("kernel_event", EVENT, (1, "kernel", "a", 15, 5_000, 7, 1), (3, "kernel", "c", 5_025, 9_000, 9, 5))
    assert [row[0] for row in path()] == ["host", "launch", "gpu", "wait", "gpu"]


@pytest.mark.parametrize(("gap", "kinds"), [(5_000, ["host", "launch", "gpu", "wait", "gpu"]),
                                            (15_000, ["host", "launch", "gpu"])])  # fmt: skip
def test_wait_of_a_stream_without_a_call(
    insert: Insert, path: Callable[..., Found], gap: int, kinds: list[str]
) -> None:
    """A kernel that starts right after one of another stream, and long after its launch, has waited for it."""
    insert("launch", CALL, (1, 1, "cudaLaunchKernel", 5, 0, 10), (5, 5, "cudaLaunchKernel", 5, 60, 10))
    insert("kernel_event", EVENT, (1, "kernel", "a", 15, 50_000, 7, 1), (3, "kernel", "c", 50_015 + gap, 900, 9, 5))
    assert [row[0] for row in path()] == kinds


def test_a_copy_that_returns_after_its_work_is_waited_for(insert: Insert, path: Callable[..., Found]) -> None:
    insert("launch", CALL, (1, 1, "cudaMemcpyAsync", 5, 0, 4_000), (2, 2, "cudaLaunchKernel", 5, 4_100, 10))
    insert("kernel_event", EVENT, (1, "memcpy", "Memcpy DtoH", 1_000, 2_500, 7, 1), (2, "kernel", "b", 4_120, 5, 7, 2))
    assert path() == [
        ("host", None, 0, 1_000),
        ("gpu", 1, 1_000, 2_500),
        ("sync", None, 3_500, 500),
        ("host", None, 4_000, 110),
        ("launch", 2, 4_110, 10),
        ("gpu", 2, 4_120, 5),
    ]


def test_backward_runs_on_another_thread(insert: Insert, path: Callable[..., Found]) -> None:
    """While thread 5 waits in backward(), thread 6 launches; a third thread launches nothing and does not count."""
    insert("op", "op_id name thread_id start_ns duration_ns", (1, "aten::mm", 5, 0, 100),
           (2, "MmBackward0", 6, 150, 300), (3, "aten::add", 5, 500, 100), (4, "loader", 8, 0, 1_000))  # fmt: skip
    insert("launch", CALL, (1, 1, "cudaLaunchKernel", 5, 10, 10), (2, 2, "cudaLaunchKernel", 6, 160, 10),
           (3, 3, "cudaLaunchKernel", 5, 580, 10))  # fmt: skip
    insert("kernel_event", EVENT, (1, "kernel", "a", 25, 5, 7, 1), (2, "kernel", "b", 175, 5, 7, 2),
           (3, "kernel", "c", 595, 900, 7, 3))  # fmt: skip
    assert path("kind, op_id, thread_id, start_ns, duration_ns") == [
        ("host", 1, 5, 0, 100),
        ("host", None, 6, 100, 50),
        ("host", 2, 6, 150, 300),
        ("host", None, 5, 450, 50),
        ("host", 3, 5, 500, 90),
        ("launch", None, None, 590, 5),
        ("gpu", None, None, 595, 900),
    ]


def test_gpu_work_alone_is_a_path(insert: Insert, path: Callable[..., Found]) -> None:
    """Without calls, idle time before and between kernels belongs to nobody or to the stream."""
    insert("kernel_event", EVENT, (1, "kernel", "a", 10, 5, 7, None), (2, "kernel", "b", 20, 5, 7, None))
    assert path() == [("gpu", 1, 10, 5), ("gap", 2, 15, 5), ("gpu", 2, 20, 5)]


def test_long_idle_time_without_a_launch_is_unknown(insert: Insert, path: Callable[..., Found]) -> None:
    insert("kernel_event", EVENT, (1, "kernel", "a", 10, 5, 7, None), (2, "kernel", "b", 20_015, 5, 7, None))
    assert path("kind, start_ns, duration_ns") == [("gpu", 10, 5), ("unknown", 15, 20_000), ("gpu", 20_015, 5)]


def test_no_gpu_work_no_path(insert: Insert, path: Callable[..., Found]) -> None:
    insert("op", "op_id name thread_id start_ns duration_ns", (1, "aten::mm", 5, 0, 100))
    assert path() == []


def test_overlapping_kernels_of_a_stream_do_not_count_twice(insert: Insert, path: Callable[..., Found]) -> None:
    insert("launch", CALL, (1, 1, "cudaLaunchKernel", 5, 0, 10), (2, 2, "cudaLaunchKernel", 5, 20, 10))
    insert("kernel_event", EVENT, (1, "kernel", "a", 15, 20_000, 7, 1), (2, "kernel", "b", 19_000, 9_000, 7, 2))
    assert path() == [
        ("host", None, 0, 10),
        ("launch", 1, 10, 5),
        ("gpu", 1, 15, 18_985),
        ("gpu", 2, 19_000, 9_000),
    ]


def test_without_launches_the_path_follows_the_device(insert: Insert, path: Callable[..., Found]) -> None:
    """Three streams; only what lies between the end of all work and the next start has no known cause."""
    insert("kernel_event", EVENT,
           (1, "kernel", "a", 0, 50_000, 1, None),
           (2, "kernel", "short, beside c", 120_000, 5_000, 1, None),
           (3, "kernel", "c", 100_000, 400_000, 2, None),
           (4, "kernel", "d", 300_000, 300_000, 3, None),
           (5, "kernel", "e", 700_000, 10_000, 1, None), device_id=0)  # fmt: skip
    insert("kernel_event", EVENT, (6, "kernel", "of another GPU", 0, 650_000, 1, None), device_id=1)
    assert path() == [
        ("gpu", 1, 0, 50_000),
        ("unknown", None, 50_000, 50_000),
        ("gpu", 3, 100_000, 200_000),
        ("gpu", 4, 300_000, 300_000),
        ("unknown", None, 600_000, 100_000),
        ("gpu", 5, 700_000, 10_000),
    ]


def test_without_launches_a_single_stream_is_followed(insert: Insert, path: Callable[..., Found]) -> None:
    insert("kernel_event", EVENT, (1, "kernel", "a", 0, 50_000, 1, None), (2, "kernel", "b", 52_000, 8_000, 1, None),
           (3, "kernel", "c", 90_000, 1_000, 1, None), device_id=0)  # fmt: skip
    assert path() == [
        ("gpu", 1, 0, 50_000),
        ("gap", 2, 50_000, 2_000),
        ("gpu", 2, 52_000, 8_000),
        ("unknown", None, 60_000, 30_000),
        ("gpu", 3, 90_000, 1_000),
    ]
