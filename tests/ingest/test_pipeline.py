"""From paths to a database: what is loaded once, what rolls back, what survives, and what the path tells."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pytest
from click.testing import Result

from command import run
from ingest.traces import HEADER, document, empty_database, kernel, launched, write
from tracedb import ingester, labels, pipeline, schema
from tracedb.errors import UsageError
from tracedb.ingester import Capture, Options, Registered, Rows
from tracedb.loading import load
from tracedb.tasks import Request

COUNTED = (*schema.INGESTED_TABLES, "capture", "annotation_kernel")


def ingest(*paths: Path, db: Path, jobs: int = 1, flags: Sequence[str] = (), new: bool = False) -> Result:
    """Run the command on a database that has its tables and views already, or on none if it is to be ``new``."""
    if not new and not db.exists() and db.parent.is_dir():
        db.write_bytes(empty_database())
    return run("ingest", *paths, "--db", db, "--jobs", str(jobs), "--format", "json", *flags)


def ask(db: Path, query: str) -> list[tuple[Any, ...]]:
    with duckdb.connect(str(db), read_only=True) as connection:
        return connection.execute(query).fetchall()


def contents(db: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Return all rows of all tables, but for the time of loading."""
    with duckdb.connect(str(db), read_only=True) as connection:
        return {
            table: connection.execute(
                f"SELECT * {'EXCLUDE (ingested_at)' if table == 'capture' else ''} FROM main.{table} ORDER BY ALL"
            ).fetchall()
            for table in COUNTED
        }


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def trace(path: Path, count: int = 3, rank: int | None = None) -> Path:
    header = HEADER if rank is None else {**HEADER, "distributedInfo": {"rank": rank, "world_size": 4}}
    return write(path, launched(count), header=header)


def broken(path: Path) -> Path:
    content = document(launched(3))
    return write(path, content + content)


class TestOnce:
    def test_the_same_bytes_change_nothing(self, tmp_path: Path) -> None:
        path, db = trace(tmp_path / "rank1.json.gz"), tmp_path / "db"
        first = ingest(path, db=db, new=True)
        assert (first.exit_code, [row["status"] for row in json.loads(first.stdout)["rows"]]) == (0, ["complete"])
        before = digest(db)
        other = tmp_path / "elsewhere" / "rank2.json.gz"
        other.parent.mkdir()
        shutil.copy(path, other)
        for paths in ([path], [other], [path, other], [tmp_path]):
            again = ingest(*paths, db=db)
            assert again.exit_code == 0
            assert {row["status"] for row in json.loads(again.stdout)["rows"]} == {"known"}
            assert digest(db) == before

    def test_twice_in_one_call(self, tmp_path: Path) -> None:
        path = trace(tmp_path / "a.json")
        shutil.copy(path, tmp_path / "b.json")
        for number, paths in enumerate(([path, tmp_path / "b.json"], [path, path], [path, tmp_path / "." / "a.json"])):
            done = ingest(*paths, db=tmp_path / f"{number}.duckdb")
            assert done.exit_code == 0
            assert ask(tmp_path / f"{number}.duckdb", "SELECT count(*) FROM capture") == [(1,)]

    def test_packed_and_unpacked(self, tmp_path: Path) -> None:
        trace(tmp_path / "in" / "x.json")
        trace(tmp_path / "in" / "x.json.gz", 4)
        trace(tmp_path / "in" / "y.json.gz", 5)
        assert ingest(tmp_path / "in", db=tmp_path / "db").exit_code == 0
        rows = ask(tmp_path / "db", "SELECT path, rows_written FROM capture ORDER BY path")
        assert rows == [(str(tmp_path / "in" / "x.json"), 9), (str(tmp_path / "in" / "y.json.gz"), 15)]
        issue = "SELECT detail, severity FROM ingest_issue WHERE code = 'duplicate_recording'"
        assert ask(tmp_path / "db", issue) == [("x.json.gz holds the same trace and was left aside", "note")]

    def test_packed_beside_an_empty_unpacked(self, tmp_path: Path) -> None:
        trace(tmp_path / "in" / "x.json.gz", 4)
        (tmp_path / "in" / "x.json").touch()
        assert ingest(tmp_path / "in", db=tmp_path / "db").exit_code == 0
        assert ask(tmp_path / "db", "SELECT rows_written FROM capture") == [(12,)]


class TestFailures:
    @pytest.mark.parametrize("jobs", [1, 2])
    def test_a_bad_file_fails_alone(self, tmp_path: Path, jobs: int) -> None:
        db = tmp_path / "db"
        ingest(trace(tmp_path / "before.json", 7), db=db)
        for name in ("a", "c"):
            trace(tmp_path / "in" / f"{name}.json", len(name) + ord(name))
        bad = broken(tmp_path / "in" / "b.json")
        done = ingest(tmp_path / "in", db=db, jobs=jobs)
        assert done.exit_code == 1
        rows = {Path(row["path"]).name: row["status"] for row in json.loads(done.stdout)["rows"]}
        assert rows == {"a.json": "complete", "b.json": "failed", "c.json": "complete"}
        assert f"tracedb: error: {bad}: a second traceEvents array" in done.stderr
        assert done.stderr.splitlines()[-1].startswith("tracedb: error: 1 of 3 files could not be loaded")
        assert ask(db, "SELECT count(*) FROM capture") == [(3,)]

    def test_the_database_is_as_before(self, tmp_path: Path) -> None:
        db = tmp_path / "db"
        ingest(trace(tmp_path / "a.json"), db=db)
        before, bytes_before = contents(db), digest(db)
        assert ingest(broken(tmp_path / "b.json"), db=db).exit_code == 1
        assert digest(db) == bytes_before
        assert contents(db) == before
        assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json", "b.json", "db"]

    def test_a_failure_in_the_middle_of_writing(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        db = tmp_path / "db"
        ingest(trace(tmp_path / "a.json"), db=db)
        before = contents(db)

        def finish(connection: duckdb.DuckDBPyConnection, capture_id: int) -> None:
            raise duckdb.InvalidInputException("no more room")

        monkeypatch.setattr("tracedb.derive.finish", finish)
        done = ingest(trace(tmp_path / "b.json", 5), db=db)
        assert done.exit_code == 1
        assert "no more room" in done.stderr
        assert contents(db) == before

    @pytest.mark.parametrize("jobs", [1, 2])
    def test_no_new_file_where_everything_failed(self, tmp_path: Path, jobs: int) -> None:
        paths = [broken(tmp_path / "in" / f"{name}.json") for name in "ab"]
        assert ingest(*paths, db=tmp_path / "db", jobs=jobs, new=True).exit_code == 1
        assert sorted(path.name for path in tmp_path.iterdir()) == ["in"]

    def test_a_file_that_vanishes(self, tmp_path: Path) -> None:
        paths = [trace(tmp_path / f"{name}.json", ord(name)) for name in "abc"]
        found = pipeline.detect(paths)
        paths[1].unlink()
        request = Request(tuple(paths), tmp_path / "db")
        outcomes = [load(task, request, {}) for task in found.tasks]
        assert [outcome.error is None for outcome in outcomes] == [True, False, True]
        assert "No such file" in str(outcomes[1].error)

    def test_a_file_that_vanishes_before_it_is_looked_at(self, tmp_path: Path) -> None:
        paths = [trace(tmp_path / f"{name}.json", ord(name)) for name in "ab"]
        paths[0].unlink()
        found = pipeline.detect(paths)
        assert [task.capture.files[0] for task in found.tasks] == paths[1:]
        assert found.unrecognised == [(paths[0], "not a regular file")]


class TestOddFiles:
    def test_links_pipes_and_folders(self, tmp_path: Path) -> None:
        folder = tmp_path / "in"
        trace(folder / "real" / "rank1.json")
        trace(tmp_path / "outside" / "rank2.json", 4)
        (folder / "loop").symlink_to(folder)
        (folder / "real" / "up").symlink_to(folder)
        (folder / "linked").symlink_to(tmp_path / "outside")
        (folder / "dangling.json").symlink_to(folder / "missing")
        (folder / "file.json").symlink_to(folder / "real" / "rank1.json")
        os.mkfifo(folder / "pipe.json")
        (folder / "folder.json").mkdir()
        done = ingest(folder, db=tmp_path / "db", flags=["-v"])
        assert done.exit_code == 0
        assert ask(tmp_path / "db", "SELECT rows_written FROM capture ORDER BY 1") == [(9,), (12,)]
        for name in ("pipe.json", "dangling.json"):
            assert f"left aside: {folder / name} (not a regular file)" in done.stderr

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
    def test_unreadable_file(self, tmp_path: Path) -> None:
        trace(tmp_path / "in" / "a.json")
        hidden = trace(tmp_path / "in" / "b.json", 4)
        hidden.chmod(0)
        done = ingest(tmp_path / "in", db=tmp_path / "db")
        assert f"left aside: {hidden} (Permission denied)" in done.stderr

    def test_names_of_any_kind(self, tmp_path: Path) -> None:
        names = [
            "a b.json",
            "quote'.json",
            'double".json',
            "percent%20.json",
            "läufe/ß.json",
            "-x.json",
            "new\nline.json",
        ]
        for place, name in enumerate(names):
            trace(tmp_path / "in" / name, place + 1)
        assert ingest(tmp_path / "in", db=tmp_path / "db").exit_code == 0
        found = {path.removeprefix(f"{tmp_path}/in/") for (path,) in ask(tmp_path / "db", "SELECT path FROM capture")}
        assert found == set(names)

    def test_name_that_is_no_text(self, tmp_path: Path) -> None:
        try:
            trace(tmp_path / os.fsdecode(b"caf\xe9.json"))
        except OSError:
            pytest.skip("the file system takes no such name")
        (outcome,) = pipeline.ingest(tmp_path, db=tmp_path / "db")
        assert outcome.error is None
        assert ask(tmp_path / "db", "SELECT path FROM capture")[0][0].endswith("/caf?.json")

    def test_unrecognised_files_are_listed(self, tmp_path: Path) -> None:
        trace(tmp_path / "in" / "a.json")
        for number in range(15):
            (tmp_path / "in" / f"note{number:02}.txt").write_text("x")
        few = ingest(tmp_path / "in", db=tmp_path / "db")
        assert few.stderr.count("left aside: ") == 11
        assert "left aside: 5 more files; -v names all" in few.stderr
        assert ingest(tmp_path / "in", db=tmp_path / "db", flags=["-v"]).stderr.count("left aside: ") == 15


class TestDatabaseFile:
    @pytest.mark.parametrize("content", [b"no database", b"SQLite format 3\x00" + bytes(8192), bytes(20_000)])
    def test_file_of_another_kind(self, tmp_path: Path, content: bytes) -> None:
        db = tmp_path / "db"
        db.write_bytes(content)
        done = ingest(trace(tmp_path / "a.json"), db=db)
        assert (done.exit_code, db.read_bytes()) == (1, content)
        assert f"tracedb: error: {db}: cannot be opened as a DuckDB database" in done.stderr
        assert "Traceback" not in done.stderr

    def test_somebody_else_s_database(self, tmp_path: Path) -> None:
        db = tmp_path / "db"
        with duckdb.connect(str(db)) as connection:
            connection.execute("CREATE TABLE theirs AS SELECT 42 AS answer")
        done = ingest(trace(tmp_path / "a.json"), db=db)
        assert done.exit_code == 1
        assert f"tracedb: error: {db}: a DuckDB file, but not one of tracedb's" in done.stderr
        assert ask(db, "SELECT table_name FROM duckdb_tables()") == [("theirs",)]

    def test_folder_in_its_place(self, tmp_path: Path) -> None:
        (tmp_path / "db").mkdir()
        done = ingest(trace(tmp_path / "a.json"), db=tmp_path / "db")
        assert (done.exit_code, "Traceback" in done.stderr) == (1, False)

    def test_no_such_folder(self, tmp_path: Path) -> None:
        done = ingest(trace(tmp_path / "a.json"), db=tmp_path / "none" / "db")
        assert (done.exit_code, "Traceback" in done.stderr) == (1, False)

    def test_b097_older_shells_can_read_it(self, tmp_path: Path) -> None:
        ingest(trace(tmp_path / "a.json"), db=tmp_path / "db", new=True)
        with duckdb.connect() as connection:
            connection.execute(f"ATTACH '{tmp_path / 'db'}' AS t (READ_ONLY)")
            (tags,) = connection.execute(
                "SELECT tags FROM duckdb_databases() WHERE database_name = 't'"
            ).fetchone() or ({},)
        assert tags["storage_version"].startswith("v1.2.0")

    def test_b096_another_process_has_it_open(self, tmp_path: Path) -> None:
        db = tmp_path / "db"
        ingest(trace(tmp_path / "a.json"), db=db)
        script = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print('open', flush=True); sys.stdin.read()"
        command = [sys.executable, "-c", script, str(db)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "open\n"
            done = ingest(trace(tmp_path / "b.json", 4), db=db)
            assert done.exit_code == 1
            expected = f"tracedb: error: {db}: process {holder.pid} has the database open; close it there"
            assert [line.startswith(expected) for line in done.stderr.splitlines()] == [True]
            assert done.stdout == ""
            holder.communicate("")
        assert ingest(tmp_path / "b.json", db=db).exit_code == 0

    def test_b096_waits_for_a_short_while(self, tmp_path: Path) -> None:
        db = tmp_path / "db"
        ingest(trace(tmp_path / "a.json"), db=db)
        found = pipeline.detect([trace(tmp_path / "b.json", 4)])
        script = "import duckdb, sys, time; c = duckdb.connect(sys.argv[1]); print('open', flush=True); time.sleep(1.5)"
        command = [sys.executable, "-c", script, str(db)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "open\n"
            outcome = load(found.tasks[0], Request((), db, first_capture_id=2), {})
        assert (outcome.error, len(outcome.loaded)) == (None, 1)


class TestJobs:
    def test_two_processes_give_the_same_rows(self, tmp_path: Path) -> None:
        for rank in range(4):
            trace(tmp_path / "in" / f"rank{rank}" / "x.json.gz", 50 + 13 * rank, rank)
        write(tmp_path / "in" / "merged.json", [*launched(3, pid=1, device=0), *launched(3, pid=2, device=1)])
        for jobs in (1, 2):
            assert ingest(tmp_path / "in", db=tmp_path / f"{jobs}.duckdb", jobs=jobs).exit_code == 0
        assert contents(tmp_path / "1.duckdb") == contents(tmp_path / "2.duckdb")
        ids = ask(tmp_path / "2.duckdb", "SELECT capture_id, rank FROM capture ORDER BY capture_id")
        assert ids == [(1, None), (2, 0), (3, 1), (4, 2), (5, 3), (6, None)]

    def test_a_killed_worker_costs_its_file_only(self, tmp_path: Path) -> None:
        small = [trace(tmp_path / "in" / f"small{i}.json", 5 + i) for i in range(3)]
        large = long_trace(tmp_path / "in" / "large.json")
        with background(tmp_path / "in", db=tmp_path / "db", jobs=2) as child:
            worker = wait_for(lambda: reader_of(child.pid, large))
            os.kill(worker, signal.SIGKILL)
            _, stderr = child.communicate(timeout=60)
        assert child.returncode == 1
        assert f"tracedb: error: {large}: the worker process reading it died (exit status -9" in stderr
        paths = {path for (path,) in ask(tmp_path / "db", "SELECT path FROM capture")}
        assert paths == {str(path) for path in small}

    def test_workers_that_do_not_start_are_said(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        paths = [trace(tmp_path / f"{name}.json", ord(name)) for name in "abc"]
        for program in ("/bin/false", "/does/not/exist"):
            monkeypatch.setattr("tracedb.workers.sys.executable", program)
            done = ingest(*paths, db=tmp_path / "db", jobs=2)
            assert done.exit_code == 1
            assert all(f"tracedb: error: {path}: " in done.stderr for path in paths)
            assert done.stderr.count("try --jobs 1") == 3

    @pytest.mark.parametrize("jobs", [1, 2])
    def test_ctrl_c_leaves_a_sound_file(self, tmp_path: Path, jobs: int) -> None:
        db = tmp_path / "db"
        ingest(trace(tmp_path / "before.json"), db=db)
        before = contents(db)
        for name in "ab":
            long_trace(tmp_path / "in" / f"{name}.json")
        with background(tmp_path / "in", db=db, jobs=jobs) as child:
            wait_for(lambda: reader_of(child.pid, tmp_path / "in" / "a.json"))
            os.killpg(child.pid, signal.SIGINT)  # as a terminal does
            _, stderr = child.communicate(timeout=60)
        assert child.returncode == 130
        assert stderr.splitlines()[-1] == "tracedb: error: interrupted"
        assert "Traceback" not in stderr
        assert contents(db) == before
        assert sorted(path.name for path in tmp_path.iterdir()) == ["before.json", "db", "in"]

    @pytest.mark.parametrize("jobs", [1, 2])
    def test_ctrl_c_before_there_is_a_file(self, tmp_path: Path, jobs: int) -> None:
        for name in "ab":
            long_trace(tmp_path / "in" / f"{name}.json")
        with background(tmp_path / "in", db=tmp_path / "db", jobs=jobs) as child:
            wait_for(lambda: reader_of(child.pid, tmp_path / "in" / "a.json"))
            child.send_signal(signal.SIGINT)
            _, stderr = child.communicate(timeout=60)
        assert child.returncode == 130
        assert stderr.splitlines()[-1] == "tracedb: error: interrupted"
        assert sorted(path.name for path in tmp_path.iterdir()) == ["in"]


@cache
def long_content() -> bytes:
    head, _, tail = document(launched(10_000), "compact").partition(b'"traceEvents":[')
    return head + b'"traceEvents":[' + b",".join([tail.rpartition(b"]")[0]] * 10) + b"]}"


def long_trace(path: Path) -> Path:
    """A trace that takes a few seconds to read; each with bytes of its own."""
    return write(path, long_content() + b"\n" * len(path.name))


def background(*paths: Path, db: Path, jobs: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tracedb", "ingest", *map(str, paths), "--db", str(db), "--jobs", str(jobs)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)


def reader_of(pid: int, path: Path) -> int | None:
    """Return the process, ``pid`` or one below it, that has the file open."""
    for process in (pid, *below(pid)):
        folder = Path("/proc") / str(process) / "fd"
        try:
            opened = [str(descriptor.readlink()) for descriptor in folder.iterdir()]
        except OSError:
            continue
        if str(path) in opened:
            return process
    return None


def below(pid: int) -> Iterator[int]:
    for task in (Path("/proc") / str(pid) / "task").glob("*/children"):
        try:
            children = [int(child) for child in task.read_text().split()]
        except OSError:
            continue
        for child in children:
            yield child
            yield from below(child)


def wait_for(found: Any) -> int:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if (result := found()) is not None:
            return int(result)
        time.sleep(0.02)
    raise AssertionError("it did not come to that")


class TestLabels:
    PATHS: tuple[tuple[str, dict[str, str]], ...] = (
        (
            "sweep_20261127_base/256thread/nccl_28channels/x.json",
            {"sweep": "sweep_20261127_base", "threads": "256", "channels": "28"},
        ),
        ("sweep/512threads/28channels/x.json", {"sweep": "sweep", "threads": "512", "channels": "28"}),
        ("Sweep-a/threads=64/channels=8/x.json", {"sweep": "Sweep-a", "threads": "64", "channels": "8"}),
        ("thread_256/nccl_channels_8/x.json", {"threads": "256", "channels": "8"}),
        ("256_threads/8-channels/x.json", {"threads": "256", "channels": "8"}),
        ("rccl_4channels/x.json", {"channels": "4"}),
        ("nccl_28ch/x.json", {"channels": "28"}),
        ("nthreads=4/nchannels=2/x.json", {"threads": "4", "channels": "2"}),
        ("lr=0.1,bs=32/x.json", {"lr": "0.1", "bs": "32"}),
        ("model=gpt__rank=3/x.json", {"model": "gpt"}),
        ("threads=1/threads=2/x.json", {"threads": "2"}),
        ("a=b.json.gz", {"a": "b"}),
        ("run/dp0.rank[3].step10.json", {"iteration": "10"}),
        ("iteration_7/rank1_trace.json.gz", {"iteration": "7"}),
        ("sweeper/threadripper/channel/x.json", {}),
        ("=x/y=/x.json", {}),
        ("plain/x.pt.trace.json", {}),
    )

    @pytest.mark.parametrize(("path", "expected"), PATHS, ids=[path for path, _ in PATHS])
    def test_of_a_path(self, path: str, expected: dict[str, str]) -> None:
        assert labels.from_path(Path("/data") / path) == expected

    def test_given_ones_win(self, tmp_path: Path) -> None:
        path = trace(tmp_path / "256thread" / "x.json")
        flags = ["--label", "threads=7", "--label", "note=a=b", "--label", "channel=9"]
        assert ingest(path, db=tmp_path / "db", flags=flags).exit_code == 0
        assert ask(tmp_path / "db", "SELECT labels FROM capture") == [
            ({"channels": "9", "note": "a=b", "threads": "7"},)
        ]

    def test_by_a_regex(self, tmp_path: Path) -> None:
        for name in ("exp7_r3", "exp8_rx"):
            trace(tmp_path / "in" / name / "x.json", ord(name[3]))
        flags = ["--labels-from", r"exp(?P<experiment>\d+)_r(?P<rank>\w+)"]
        assert ingest(tmp_path / "in", db=tmp_path / "db", flags=flags).exit_code == 0
        rows = ask(tmp_path / "db", "SELECT labels, rank FROM capture ORDER BY path")
        assert rows == [({"experiment": "7"}, 3), ({"experiment": "8"}, None)]

    @pytest.mark.parametrize(
        "flags",
        [["--label", "x"], ["--label", "=x"], ["--label", "x="], ["--labels-from", "("], ["--labels-from", "x"]],
    )
    def test_faulty_ones_are_usage_errors(self, tmp_path: Path, flags: list[str]) -> None:
        done = ingest(trace(tmp_path / "x.json"), db=tmp_path / "db", flags=flags, new=True)
        assert (done.exit_code, (tmp_path / "db").exists()) == (2, False)
        assert done.stderr.startswith(f"tracedb: error: {flags[0]}")


class TestDryRun:
    def test_nothing_is_loaded(self, tmp_path: Path) -> None:
        path = trace(tmp_path / "sweep1" / "256thread" / "rank3.json")
        (tmp_path / "sweep1" / "note.txt").write_text("x")
        done = ingest(tmp_path / "sweep1", db=tmp_path / "db", flags=["--dry-run"], new=True)
        assert (done.exit_code, (tmp_path / "db").exists()) == (0, False)
        (row,) = json.loads(done.stdout)["rows"]
        assert (row["path"], row["source"], row["rank"], row["bytes"]) == (str(path), "torch", 3, path.stat().st_size)
        assert row["labels"] == {"sweep": "sweep1", "threads": "256"}
        assert "left aside" in done.stderr


class Fake:
    """An ingester that claims every file with a given ending, and yields what it is told to."""

    def __init__(self, name: str, ending: str, rows: Sequence[Rows] = ()) -> None:
        self.name = name
        self._ending = ending
        self._rows = rows

    def find(self, files: Sequence[Path]) -> Iterable[Capture]:
        return [Capture((path,)) for path in files if path.suffix == self._ending]

    def read(self, capture: Capture, scratch: duckdb.DuckDBPyConnection, options: Options) -> Iterator[Rows]:
        yield from self._rows


class FakeEntry:
    """What an entry point gives."""

    def __init__(self, found: Any) -> None:
        self._found = found
        self.value = "fake:ingester"

    def load(self) -> Any:
        if isinstance(self._found, Exception):
            raise self._found
        return self._found


class TestIngesters:
    @staticmethod
    def register(monkeypatch: pytest.MonkeyPatch, *found: tuple[str, Any]) -> None:
        known = ingester.registered()
        fakes = [Registered(name, "fakes", "1.0", FakeEntry(item)) for name, item in found]  # type: ignore[arg-type]
        monkeypatch.setattr("tracedb.ingester.registered", lambda: [*known, *fakes])

    def test_two_claims_of_a_file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.register(monkeypatch, ("rival", Fake("rival", ".json")))
        path = trace(tmp_path / "x.json")
        done = ingest(path, db=tmp_path / "db", new=True)
        assert (done.exit_code, (tmp_path / "db").exists()) == (2, False)
        assert (
            done.stderr == f"tracedb: error: {path}: both torch and rival recognise it; choose with --ingester NAME\n"
        )
        assert ingest(path, db=tmp_path / "db", flags=["--ingester", "torch"]).exit_code == 0

    def test_unknown_and_broken_ones(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
        self.register(monkeypatch, ("broken", ImportError("no module")), ("nothing", object()))
        path = trace(tmp_path / "x.json")
        assert [registered.name for registered, _ in ingester.load()] == [item.name for item in ingester.registered()][
            :-2
        ]
        assert "warning: ingester broken of fakes cannot be loaded: no module" in capsys.readouterr().err
        for name in ("missing", "broken", "nothing"):
            done = ingest(path, db=tmp_path / "db", flags=["--ingester", name])
            assert (done.exit_code, name in done.stderr) == (2, True)

    @pytest.mark.parametrize(
        ("rows", "words"),
        [
            ([], "gave no rows"),
            ([Rows("launch", schema.arrow("launch").empty_table())], "gave rows but no capture row"),
            ([Rows("meta", schema.arrow("launch").empty_table())], "no table that ingesters fill"),
        ],
    )
    def test_one_that_breaks_the_rules(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: list[Rows], words: str
    ) -> None:
        self.register(monkeypatch, ("fake", Fake("fake", ".fake", rows)))
        path = tmp_path / "x.fake"
        path.write_text("x")
        done = ingest(path, db=tmp_path / "db", new=True)
        assert done.exit_code == 1
        assert words in done.stderr
        assert not (tmp_path / "db").exists()


class TestFromPython:
    def test_ingest(self, tmp_path: Path) -> None:
        path = trace(tmp_path / "rank3.json")
        (outcome,) = pipeline.ingest(path, db=tmp_path / "db", label={"note": "x"})
        assert (outcome.path, outcome.error, outcome.is_known) == (path, None, False)
        (loaded,) = outcome.loaded
        assert (loaded.capture_id, loaded.rank, loaded.kernels, loaded.labels) == (1, 3, 3, {"note": "x"})
        (again,) = pipeline.ingest(str(path), db=str(tmp_path / "db"))
        assert (again.is_known, again.loaded) == (True, [])
        (failed,) = pipeline.ingest(broken(tmp_path / "b.json"), db=tmp_path / "db")
        assert "two traces were written into one file" in str(failed.error)
        with pytest.raises(UsageError, match="no such file or folder"):
            pipeline.ingest(tmp_path / "none", db=tmp_path / "db")

    def test_numbers_go_on(self, tmp_path: Path) -> None:
        for name in "ab":
            pipeline.ingest(write(tmp_path / f"{name}.json", [kernel(ord(name))]), db=tmp_path / "db")
        assert ask(tmp_path / "db", "SELECT capture_id FROM capture ORDER BY 1") == [(1,), (2,)]
