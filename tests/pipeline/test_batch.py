"""Small captures loaded together: each has its own transaction, and a fault affects only its own capture."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pytest

from support.command import run
from support.loading import ask, broken, contents, ingest, opened, trace
from support.traces import launched, write
from tracedb.ingester import Capture
from tracedb.pipeline import batch_load, capture_load, discovery, worker_pool, writable_database
from tracedb.pipeline.task import Outcome, Request, Task
from tracedb.pipeline.writer import Writer
from tracedb.storage import connection as database


def task(size: int, number: int = 0, source: str = "torch") -> Task:
    return Task(Capture((Path(f"{number}.json"),)), source, size, number)


def load_all(folder: Path, db: Path) -> list[Outcome]:
    """Load a folder in one go."""
    found = discovery.detect(discovery.discover([folder]))
    return batch_load.load(found.tasks, Request((folder,), db), {})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for rank in range(4):
        trace(tmp_path / "in" / f"rank{rank}.json", 5 + rank, rank)
    return tmp_path / "in"


@pytest.fixture
def openings(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The database, each time that it is opened for writing."""
    found: list[Path] = []
    attached = database.attached

    def counted(connection: duckdb.DuckDBPyConnection, path: Path) -> Any:
        found.append(path)
        return attached(connection, path)

    monkeypatch.setattr(writable_database, "attached", counted)
    return found


class TestGroups:
    def test_small_ones_of_a_source_go_together_and_large_ones_come_first(self) -> None:
        large = [task(batch_load.SMALL_BYTES + size, size) for size in (5, 9)]
        small = [task(10, number) for number in range(20, 28)]
        others = [task(10, number, "nsys") for number in range(30, 32)]
        groups = batch_load.together([*small, *large, *others], 2)
        assert groups == [[large[1]], [large[0]], small[:2], small[2:4], small[4:6], small[6:], others[:1], others[1:]]

    def test_a_group_has_its_limit(self) -> None:
        groups = batch_load.together([task(10, number) for number in range(1000)], 1)
        assert {len(group) for group in groups[:-1]} == {batch_load.MOST_TOGETHER}
        assert sum(map(len, groups)) == 1000


class TestTogether:
    def test_the_rows_are_those_of_one_after_the_other(
        self, folder: Path, tmp_path: Path, openings: list[Path], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(batch_load, "READ_SECONDS", 600.0)
        assert [outcome.error for outcome in load_all(folder, tmp_path / "together")] == [None] * 4
        assert len(openings) == 1
        monkeypatch.setattr(batch_load, "READ_SECONDS", 0.0)
        load_all(folder, tmp_path / "singly")
        assert len(openings) == 5
        assert contents(tmp_path / "together") == contents(tmp_path / "singly")

    def test_a_file_that_cannot_be_read_costs_itself(self, folder: Path, tmp_path: Path) -> None:
        broken(folder / "rank1.json")
        outcomes = load_all(folder, tmp_path / "db")
        assert [outcome.error is None for outcome in outcomes] == [True, False, True, True]
        assert ask(tmp_path / "db", "SELECT capture_id, rank FROM capture ORDER BY ALL") == [(1, 0), (3, 2), (4, 3)]

    def test_one_that_cannot_be_written_leaves_no_row(
        self, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        capture = Writer._capture

        def failing(self: Writer, rows: Any, part: Any) -> None:
            capture(self, rows, part)
            if part.capture_id in (1, 3):
                raise duckdb.IOException("the disk is tired")

        monkeypatch.setattr(Writer, "_capture", failing)
        outcomes = load_all(folder, tmp_path / "db")
        assert [outcome.error for outcome in outcomes] == ["the disk is tired", None, "the disk is tired", None]
        assert [len(outcome.loaded) for outcome in outcomes] == [0, 1, 0, 1]
        with opened(tmp_path / "db") as connection:
            for table in ("capture", "kernel_event", "op", "annotation", "ingest_issue"):
                found = connection.execute(f"SELECT capture_id FROM {table}").fetchall()
                assert {2, 4} >= {number for (number,) in found}
            assert connection.execute("SELECT count(*) > 0 FROM v1.top_kernels").fetchall() == [(True,)]

    def test_the_same_bytes_twice_are_loaded_once(self, folder: Path, tmp_path: Path) -> None:
        (folder / "rank9.json").write_bytes((folder / "rank0.json").read_bytes())
        outcomes = load_all(folder, tmp_path / "db")
        assert [outcome.is_known for outcome in outcomes] == [False, False, False, False, True]
        assert ask(tmp_path / "db", "SELECT count(*) FROM capture") == [(4,)]

    def test_where_all_fail_no_file_is_left(
        self, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def failing(self: Writer, rows: Any, part: Any) -> None:
            raise duckdb.IOException("the disk is tired")

        monkeypatch.setattr(Writer, "_capture", failing)
        assert all(outcome.error for outcome in load_all(folder, tmp_path / "db"))
        assert [path.name for path in tmp_path.iterdir()] == ["in"]

    def test_after_a_commit_that_failed_no_more_are_written(
        self, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """On a full disk; what was committed before stays."""
        real, begun = database.transaction, []

        @contextmanager
        def transaction(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
            begun.append(connection)
            if len(begun) == 2:
                yield
                raise duckdb.IOException("no space left")
            with real(connection):
                yield

        monkeypatch.setattr(capture_load, "transaction", transaction)
        outcomes = load_all(folder, tmp_path / "db")
        assert [outcome.error for outcome in outcomes] == [None, *["no space left"] * 3]
        assert len(begun) == 2

    def test_a_folder_that_cannot_be_written_is_one_line(self, folder: Path) -> None:
        if not Path("/proc/self").exists():
            pytest.skip("there is no folder here that nobody may write to")
        for jobs in (1, 2):
            done = ingest(folder, db=Path("/proc/x.duckdb"), jobs=jobs, new=True)
            assert done.exit_code == 1
            assert "Traceback" not in done.stderr
            assert (
                done.stderr.count("/proc/x.duckdb: the folder /proc cannot be written (No such file or directory)") == 4
            )

    def test_a_file_that_is_no_database_is_said_of_each(self, folder: Path, tmp_path: Path) -> None:
        (tmp_path / "db").write_text("no database at all, but long enough to be looked at" * 100)
        outcomes = load_all(folder, tmp_path / "db")
        assert all("cannot be opened as a DuckDB database" in str(outcome.error) for outcome in outcomes)

    def test_processes_of_a_merged_file_are_numbered_after_all(self, folder: Path, tmp_path: Path) -> None:
        write(folder / "merged.json", [*launched(3, pid=1, device=0), *launched(3, pid=2, device=1)])
        load_all(folder, tmp_path / "db")
        found = ask(tmp_path / "db", "SELECT capture_id, rank, part FROM capture ORDER BY capture_id")
        assert found == [(1, None, 0), (2, 0, 0), (3, 1, 0), (4, 2, 0), (5, 3, 0), (6, None, 1)]


DYING = """
import os
from tracedb.pipeline import worker_process as workers
load = workers.load
workers.load = lambda group, *others, **named: os._exit(9) if len(group) > 1 else load(group, *others, **named)
workers.main()
"""


def test_many_small_traces_load_in_little_time_and_few_words(tmp_path: Path) -> None:
    count = 24
    for rank in range(count):
        write(tmp_path / "in" / f"rank{rank}.json", launched(40, first=1 + rank, pid=4000 + rank))
    done = run("ingest", tmp_path / "in", "--db", tmp_path / "words.duckdb", "--jobs", "1")
    assert done.exit_code == 0
    assert len(done.stderr.splitlines()) <= 2
    each: list[float] = []
    while len(each) < 3 and min(each, default=1.0) >= 0.1:  # on a busy machine it may take another attempt
        begun = time.process_time()
        outcomes = load_all(tmp_path / "in", tmp_path / f"{len(each)}.duckdb")
        each.append((time.process_time() - begun) / len(outcomes))
        assert [outcome.error for outcome in outcomes] == [None] * count
    assert min(each) < 0.1  # the aim is half of that, on a machine that does nothing else


def test_of_a_worker_that_died_every_file_is_tried_singly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, openings: list[Path]
) -> None:
    for rank in range(9):
        trace(tmp_path / "in" / f"rank{rank}.json", 5 + rank, rank)
    monkeypatch.setattr(worker_pool, "QUIET_START", DYING.replace("{", "{{").replace("}", "}}"))
    done = ingest(tmp_path / "in", db=tmp_path / "db", jobs=2)
    assert done.exit_code == 0
    assert ask(tmp_path / "db", "SELECT list(rank ORDER BY capture_id) FROM capture") == [(list(range(9)),)]
