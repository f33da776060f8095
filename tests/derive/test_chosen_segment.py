"""Critical paths found for one report: over all ranks of a recording, and in a window of time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import duckdb
import pytest

from support import rows
from support.loading import empty_connection
from support.pipelines import Pipeline
from tracedb.derive import chosen_segment, critical_segment
from tracedb.errors import NotCaptured
from views.test_pipeline_bubble import insert_pipeline

Insert = Callable[..., None]
Paths = Callable[..., list[tuple[Any, ...]]]
EVENT = "event_id kind name start_ns duration_ns stream_id launch_id"
CALL = "launch_id correlation_id name thread_id start_ns duration_ns"
COLUMNS = "capture_id, kind, event_id, start_ns, duration_ns"


@pytest.fixture(scope="module")
def made() -> Iterator[duckdb.DuckDBPyConnection]:
    with empty_connection() as connection:
        yield connection


@pytest.fixture
def db(made: duckdb.DuckDBPyConnection) -> Iterator[duckdb.DuckDBPyConnection]:
    made.execute("BEGIN")
    yield made
    made.execute("ROLLBACK")


@pytest.fixture
def insert(db: duckdb.DuckDBPyConnection) -> Insert:
    return partial(rows.insert, db)


@pytest.fixture
def paths(db: duckdb.DuckDBPyConnection) -> Paths:
    def found(
        columns: str = COLUMNS,
        window: tuple[int, int] | None = None,
        is_across_ranks: bool = True,
        chosen: str = "true",
    ) -> list[tuple[Any, ...]]:
        db.execute(
            f"CREATE OR REPLACE TEMP TABLE selected_capture AS SELECT capture_id FROM main.capture WHERE {chosen}"
        )
        chosen_segment.find(db, window, is_across_ranks)
        return db.execute(f"SELECT {columns} FROM temp.chosen_segment ORDER BY path_id, step, ordinal").fetchall()

    return found


@pytest.fixture
def late(insert: Insert) -> None:
    """Two ranks, whose clocks differ by 5,000; rank 1 launches its all-reduce 900 late. The transfer takes 100."""
    for rank, begin in enumerate((0, 900)):
        capture, ahead = rank + 1, 5_000 * rank
        insert("capture", "capture_id source rank clock_zero_unix_ns", (capture, "torch", rank, 10_000 - ahead),
               world_size=2)  # fmt: skip
        insert("launch", CALL, (1, 1, "cudaLaunchKernel", 5, ahead + begin, 10),
               (2, 2, "cudaStreamSynchronize", 5, ahead + begin + 20, 1_010 - begin - 10 * rank),
               capture_id=capture)  # fmt: skip
        insert("kernel_event", EVENT, (1, "kernel", "ncclDevKernel_AllReduce", ahead + begin + 20, 1_000 - begin, 7, 1),
               capture_id=capture, device_id=0, collective="allreduce", group_name="0", group_size=2)  # fmt: skip
        insert("op", "op_id name thread_id start_ns duration_ns", (1, "forward", 5, ahead, begin + 10),
               capture_id=capture)  # fmt: skip


@pytest.mark.usefixtures("late")
class TestLateRank:
    def test_the_path_continues_on_the_rank_that_was_waited_for(self, paths: Paths) -> None:
        """Rank 0 ends last; before the transfer, its all-reduce waited for rank 1, and that for its host."""
        assert paths() == [
            (2, "host", None, 5_000, 910),
            (2, "launch", 1, 5_910, 10),
            (1, "gpu", 1, 920, 100),
            (1, "sync", None, 1_020, 10),
        ]

    def test_the_sum_is_the_span_over_ranks(self, paths: Paths) -> None:
        found = paths("path_id, ordinal, duration_ns")
        assert [ordinal for _, ordinal, _ in found] == [0, 1, 2, 3]
        assert len({path for path, _, _ in found}) == 1
        assert sum(duration for _, _, duration in found) == 1_030

    def test_the_end_on_a_chosen_rank(self, paths: Paths) -> None:
        assert paths(chosen="rank = 1") == [
            (2, "host", None, 5_000, 910),
            (2, "launch", 1, 5_910, 10),
            (2, "gpu", 1, 5_920, 100),
        ]

    def test_alone(self, paths: Paths) -> None:
        """On one rank, the whole all-reduce counts, with its waiting."""
        assert paths(is_across_ranks=False, chosen="rank = 0") == [
            (1, "host", None, 0, 10),
            (1, "launch", 1, 10, 10),
            (1, "gpu", 1, 20, 1_000),
            (1, "sync", None, 1_020, 10),
        ]

    def test_window(self, paths: Paths) -> None:
        """From 880 to 940 after the first event of the run, which is that of rank 0: the work launched there counts."""
        assert paths(window=(880, 940), is_across_ranks=False) == [
            (1, "gpu", 1, 900, 60),
            (2, "host", None, 5_900, 10),
            (2, "launch", 1, 5_910, 10),
            (2, "gpu", 1, 5_920, 100),
        ]

    def test_window_after_everything(self, paths: Paths) -> None:
        assert paths(window=(5_000, 6_000), is_across_ranks=False) == []


@pytest.mark.parametrize("slow", [0, 2])
def test_the_slow_stage_of_a_pipeline_has_most_of_the_path(
    insert: Insert, paths: Paths, db: duckdb.DuckDBPyConnection, slow: int
) -> None:
    """The other stages are on the path only while the pipeline fills and drains."""
    times = [300_000 if stage == slow else 100_000 for stage in range(4)]
    pipeline = Pipeline(times, times, 8, transfer=5_000)
    insert_pipeline(insert, pipeline)
    db.execute("DELETE FROM main.annotation")
    found = paths("capture_id, kind, duration_ns")
    ends = [item.end or 0 for stage in pipeline.items for _, item in stage]
    assert sum(duration for _, _, duration in found) == max(ends) - 10  # the first launch
    computed = {rank: 0 for rank in range(4)}
    for rank, kind, duration in found:
        computed[rank] += duration if kind == "gpu" else 0
    assert computed[slow] >= 8 * 600_000
    assert all(computed[rank] < 3 * 200_000 for rank in range(4) if rank != slow)


def test_one_rank(insert: Insert, paths: Paths) -> None:
    insert("capture", "capture_id source rank", (1, "torch", 0))
    insert("kernel_event", EVENT, (1, "kernel", "a", 15, 500, 7, None), capture_id=1, device_id=0)
    with pytest.raises(NotCaptured, match="ingest the captures of all ranks"):
        paths()


def test_the_paths_of_a_chosen_range_are_those_at_load(
    insert: Insert, paths: Paths, db: duckdb.DuckDBPyConnection
) -> None:
    insert("capture", "capture_id source rank", (1, "torch", 0))
    insert("kernel_event", EVENT, (1, "kernel", "a", 15, 500, 7, None), capture_id=1, device_id=0)
    critical_segment.find(db, 1)
    assert paths(is_across_ranks=False) == db.execute(f"SELECT {COLUMNS} FROM main.critical_segment").fetchall()


def test_nothing_is_known_before_a_rank_recorded(insert: Insert, paths: Paths) -> None:
    """Rank 1, which is waited for, has recorded from 400 on; the step of rank 0 begins at 0."""
    for rank, (begin, length) in enumerate(((20, 1_000), (920, 100))):
        capture = rank + 1
        insert("capture", "capture_id source rank", (capture, "torch", rank), world_size=2)
        insert("launch", CALL, (1, 1, "cudaLaunchKernel", 5, begin - 20, 10), capture_id=capture)
        insert("kernel_event", EVENT, (1, "kernel", "ncclDevKernel_AllReduce", begin, length, 7, 1),
               capture_id=capture, device_id=0, collective="allreduce", group_name="0", group_size=2)  # fmt: skip
    insert("op", "op_id name thread_id start_ns duration_ns", (1, "forward", 5, 400, 510), capture_id=2)
    assert paths(chosen="rank = 0") == [
        (2, "unknown", None, 0, 400),
        (2, "host", None, 400, 510),
        (2, "launch", 1, 910, 10),
        (1, "gpu", 1, 920, 100),
    ]
