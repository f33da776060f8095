"""Many processes and one file: array jobs, reports during an ingest; each waits for the others."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from support.command import run
from support.fakes import Failing, register
from support.loading import ask, broken, ingest, trace
from tracedb import errors
from tracedb.pipeline import known_captures
from tracedb.storage import connection as database
from tracedb.storage import database_file, lock_wait, template_database
from tracedb.storage.connection import attached, workbench

JOBS = 5


def started(*arguments: str | Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tracedb", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ended(processes: list[subprocess.Popen[str]]) -> list[tuple[int, str]]:
    """Return exit code and stderr of each."""
    said = [process.communicate(timeout=600)[1] for process in processes]
    return [(process.returncode, text) for process, text in zip(processes, said, strict=True)]


@contextmanager
def holding(db: Path, seconds: float = 600) -> Iterator[subprocess.Popen[str]]:
    """Have another process keep the database open for writing, for so long at most."""
    script = (
        "import duckdb, select, sys; c = duckdb.connect(sys.argv[1]); print('open', flush=True); "
        "select.select([sys.stdin], [], [], float(sys.argv[2]))"
    )
    command = [sys.executable, "-c", script, str(db), str(seconds)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == "open\n"
        yield holder
        holder.terminate()


class TestOneNewFile:
    def test_each_job_of_an_array_loads_its_own(self, tmp_path: Path) -> None:
        """Four files and one of them twice, with a report meanwhile."""
        db = tmp_path / "run.duckdb"
        files = [trace(tmp_path / f"{rank}.json", 3 + rank, rank) for rank in range(JOBS - 1)]
        jobs = [started("ingest", path, "--db", db, "--jobs", "1") for path in [*files, files[0]]]
        while not db.exists() and any(job.poll() is None for job in jobs):
            time.sleep(0.02)
        report = started("report", "top-kernels", "--db", db, "--wait", "600")
        outcomes = ended(jobs)
        assert [code for code, _ in outcomes] == [0] * JOBS, outcomes
        assert sum("1 capture loaded" in said for _, said in outcomes) == JOBS - 1
        assert sum("0 captures loaded, 1 known before" in said for _, said in outcomes) == 1
        # One that finds no capture yet says that.
        assert {code for code, _ in ended([report])} <= {0, 3}
        assert ask(db, "SELECT rank FROM capture ORDER BY rank") == [(rank,) for rank in range(JOBS - 1)]
        assert ask(db, "SELECT count(*), count(DISTINCT capture_id) FROM capture") == [(JOBS - 1, JOBS - 1)]
        assert ask(db, "SELECT count(*) FROM meta.owed") == [(0,)]
        assert {path.name for path in tmp_path.iterdir()} == {"run.duckdb", *(path.name for path in files)}

    def test_a_job_that_fails_does_not_take_the_file_from_another(self, tmp_path: Path) -> None:
        """Where they begin with a file that nothing was written into."""
        db = tmp_path / "run.duckdb"
        db.touch()
        good = [trace(tmp_path / f"{rank}.json", 3 + rank, rank) for rank in range(2)]
        bad = [broken(tmp_path / f"bad{number}.json") for number in range(2)]
        outcomes = ended([started("ingest", path, "--db", db, "--jobs", "1") for path in (*bad, *good)])
        assert [code for code, _ in outcomes] == [1, 1, 0, 0], outcomes
        assert ask(db, "SELECT rank FROM capture ORDER BY rank") == [(0,), (1,)]


def test_one_of_several_places_a_file(tmp_path: Path) -> None:
    db = tmp_path / "run.duckdb"
    placed: list[bool] = []
    threads = [threading.Thread(target=lambda: placed.append(template_database.place(db))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(placed) == [False, False, False, True]
    with database.connect(db) as connection:
        assert connection.execute("SELECT count(*) FROM capture").fetchall() == [(0,)]


def test_a_file_that_was_replaced_while_it_was_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is opened again, and nothing is written into the one that has no name any more."""
    db = tmp_path / "run.duckdb"
    template_database.place(db)
    seen: list[tuple[int, int] | None] = []

    def replaced_after(path: Path) -> tuple[int, int] | None:
        seen.append(database_file.identity(path))
        if len(seen) == 1:
            path.unlink()
            template_database.place(path)
        return seen[-1]

    monkeypatch.setattr("tracedb.storage.connection.identity", replaced_after)
    with workbench("100MB", 1, db) as connection, attached(connection, db):
        connection.execute("INSERT INTO main.kernel_rule VALUES (1, 'x', 'copy')")
    assert len(seen) == 4
    assert ask(db, "SELECT count(*) FROM kernel_rule") == [(1,)]


class Said(list[str]):
    """What is said on stderr; the holder of a database is ended by the first that says one waits for it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__()
        self.holder: subprocess.Popen[str] | None = None
        monkeypatch.setattr("tracedb.cli.options.note", self._take)

    def _take(self, text: str) -> None:
        self.append(text)
        if self.holder is not None and "waiting" in text:
            self.holder.terminate()


class TestWaiting:
    def test_an_ingest_waits_and_says_so(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        db = tmp_path / "run.duckdb"
        ingest(trace(tmp_path / "a.json"), db=db)
        said = Said(monkeypatch)
        with holding(db) as holder:
            said.holder = holder
            assert ingest(trace(tmp_path / "b.json", 4), db=db).exit_code == 0
        assert said[0] == f"waiting up to 600 s (--wait): {db}: process {holder.pid} has the database open"

    def test_workers_say_that_they_wait(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """They meet it when they write: it was free when the command looked at what is known."""
        db = tmp_path / "run.duckdb"
        for rank in range(2):
            trace(tmp_path / "in" / f"{rank}.json", 3 + rank, rank)
        template_database.place(db)
        said = Said(monkeypatch)
        with ExitStack() as stack:
            known = known_captures.in_database

            def then_held(database: Path) -> object:
                found = known(database)
                said.holder = stack.enter_context(holding(db))
                return found

            monkeypatch.setattr("tracedb.pipeline.known_captures.in_database", then_held)
            done = ingest(tmp_path / "in", db=db, jobs=2)
        assert done.exit_code == 0, done.stderr
        assert said[0].startswith("waiting up to 600 s (--wait): ")
        assert ask(db, "SELECT count(*) FROM capture") == [(2,)]

    def test_readers_wait(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        db = tmp_path / "run.duckdb"
        ingest(trace(tmp_path / "a.json"), db=db)
        with holding(db, 1.0):
            assert run("report", "top-kernels", "--db", db, "--wait", "600").exit_code == 0
        with holding(db) as holder:
            monkeypatch.setattr(lock_wait, "time", SimpleNamespace(monotonic=time.monotonic))  # it cannot sleep
            for command in (("report", "top-kernels"), ("sql", "SELECT 1"), ("views", "verify"), ("schema", "op")):
                done = run(*command, "--db", db, "--wait", "0")
                assert done.exit_code == 1
                assert f"{db}: process {holder.pid} has the database open" in done.stderr
                assert "--wait SECONDS" in done.stderr

    def test_doctor_says_nothing_of_what_a_database_in_use_holds(self, tmp_path: Path) -> None:
        db = tmp_path / "run.duckdb"
        assert ingest(trace(tmp_path / "0.json", 3), db=db, new=True).exit_code == 0
        with holding(db):
            done = run("doctor", "--db", db, "--wait", "0")
        assert (done.exit_code, "has the database open" in done.stderr) == (1, True)
        assert "what the captures hold" not in done.stdout

    def test_time_up_fails_what_is_left_and_no_more(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """What was loaded by then is told; files that were not are named with the reason."""
        db = tmp_path / "run.duckdb"
        files = [trace(tmp_path / f"{rank}.json", 3 + rank, rank) for rank in range(3)]
        written: list[Path] = []
        original = template_database.place

        def busy_later(path: Path) -> bool:
            written.append(path)
            if len(written) > 1:
                raise errors.DatabaseBusy(f"{path}: process 1 has the database open; close it there")
            return original(path)

        monkeypatch.setattr("tracedb.storage.template_database.place", busy_later)
        monkeypatch.setattr("tracedb.pipeline.batch_load.SMALL_BYTES", 0)
        done = ingest(*files, db=db, new=True, flags=["--wait", "0"])
        assert done.exit_code == 1
        assert done.stderr.count("process 1 has the database open") == 2
        assert "1 capture loaded, 0 known before, 2 failed" in done.stderr
        assert len(written) == 2
        assert ask(db, "SELECT count(*) FROM capture") == [(1,)]

    def test_pauses_are_random_and_bounded(self, monkeypatch: pytest.MonkeyPatch) -> None:
        pauses: list[float] = []
        clock = [0.0]

        def sleep(seconds: float) -> None:
            pauses.append(seconds)
            clock[0] += seconds

        monkeypatch.setattr("tracedb.storage.lock_wait.time.sleep", sleep)
        monkeypatch.setattr("tracedb.storage.lock_wait.time.monotonic", lambda: clock[0])
        said: list[str] = []
        token = lock_wait.PATIENCE.set(lock_wait.Patience(20, said.append))

        def attempt() -> None:
            raise errors.DatabaseBusy("x.duckdb: process 7 has the database open; close it there")

        try:
            with pytest.raises(errors.DatabaseBusy):
                lock_wait.until_free(attempt)
        finally:
            lock_wait.PATIENCE.reset(token)
        assert sum(pauses) == pytest.approx(20)
        assert max(pauses) <= lock_wait.LONGEST_PAUSE
        assert len(set(pauses)) > len(pauses) // 2
        assert said == ["waiting up to 20 s (--wait): x.duckdb: process 7 has the database open"]


def test_a_failed_first_ingest_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    register(monkeypatch, ("odd", Failing("odd", {"bad": KeyError("ts")}, "later")))
    (tmp_path / "x.odd").write_text("bad")
    assert ingest(tmp_path / "x.odd", db=tmp_path / "db", new=True).exit_code == 1
    assert [path.name for path in tmp_path.iterdir()] == ["x.odd"]
