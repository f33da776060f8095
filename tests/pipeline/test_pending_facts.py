"""Facts over several captures: what an interrupted process leaves undone is recorded, warned about and completed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from support.command import run
from support.loading import ask, ingest, trace
from tracedb import errors
from tracedb.derive import clock_alignment

RUN = Path(__file__).resolve().parents[2] / "examples" / "run" / "sweep_sample" / "256thread" / "nccl_4channels"
KILLED = """
import os, signal
from tracedb.derive import clock_alignment as clocks
clocks.align_file = lambda *given, **named: os.kill(os.getpid(), signal.SIGKILL)
from tracedb.cli.main import main
main()
"""
ALIGNED = "SELECT * FROM clock_alignment ORDER BY capture_id"
OWED = "SELECT fact, capture_id FROM meta.owed ORDER BY ALL"
WARNING = "clock alignment is not worked out yet for"


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    db = tmp_path_factory.mktemp("clean") / "db"
    assert ingest(RUN, db=db).exit_code == 0
    return db


@pytest.fixture(scope="module")
def killed_once(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A database whose ingest was killed between the last commit and the alignment."""
    db = tmp_path_factory.mktemp("killed") / "db"
    command = [sys.executable, "-c", KILLED, "ingest", str(RUN), "--db", str(db), "--jobs", "1"]
    assert subprocess.run(command, capture_output=True, check=False).returncode == -9
    return db.read_bytes()


@pytest.fixture
def killed(tmp_path: Path, killed_once: bytes) -> Path:
    db = tmp_path / "db"
    db.write_bytes(killed_once)
    return db


def test_what_is_owed_is_in_the_file_and_warned_of(killed: Path) -> None:
    owing = ask(killed, OWED)
    assert {fact for fact, _ in owing} == {"clock_alignment"}
    assert len(owing) >= 3
    assert ask(killed, ALIGNED) == []
    assert WARNING in run("report", "stragglers", "--db", killed).stderr
    assert WARNING not in run("-q", "report", "stragglers", "--db", killed).stderr


def test_an_ingest_of_nothing_new_does_it(killed: Path, clean: Path) -> None:
    done = ingest(RUN, db=killed)
    assert done.exit_code == 0
    assert "0 captures loaded, 4 known before" in done.stderr
    assert ask(killed, ALIGNED) == ask(clean, ALIGNED) != []
    assert ask(killed, OWED) == []
    assert WARNING not in run("report", "stragglers", "--db", killed).stderr


def test_an_ingest_of_something_else_does_it(killed: Path, clean: Path, tmp_path: Path) -> None:
    assert ingest(trace(tmp_path / "other.json"), db=killed).exit_code == 0
    assert ask(killed, ALIGNED) == ask(clean, ALIGNED)


def test_an_ingest_that_fails_does_it_too(killed: Path, clean: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text('{"schemaVersion": 1, "traceEvents": [}')
    ingest(bad, db=killed)
    assert ask(killed, ALIGNED) == ask(clean, ALIGNED)


def test_a_busy_database_is_told_and_the_next_ingest_does_it(
    tmp_path: Path, clean: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = tmp_path / "db"

    def busy(*given: object, **named: object) -> None:
        raise errors.DatabaseBusy(f"{db}: process 1 has the database open; close it there")

    with monkeypatch.context() as patched:
        patched.setattr("tracedb.derive.clock_alignment.align_file", busy)
        done = ingest(RUN, db=db)
        assert done.exit_code == 1
        assert done.stderr.splitlines()[-1] == f"tracedb: error: {db}: process 1 has the database open; close it there"
    assert ingest(RUN, db=db).exit_code == 0
    assert ask(db, ALIGNED) == ask(clean, ALIGNED)


def test_it_is_done_once(killed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By whichever process comes first; another finds nothing owed when it has the file."""
    clock_alignment.align_file(killed, if_owed=True)
    monkeypatch.setattr("tracedb.derive.clock_alignment.align", lambda connection: pytest.fail("aligned again"))
    clock_alignment.align_file(killed, if_owed=True)


def test_a_report_without_an_answer_says_it_too(tmp_path: Path) -> None:
    """As after an ingest that was killed before the other ranks were loaded."""
    db = tmp_path / "db"
    assert ingest(RUN.parent / "nccl_16channels" / "torch_profiler" / "rank0", RUN / "torch_profiler" / "rank0", db=db)
    assert WARNING not in run("report", "stragglers", "--db", db).stderr
    with duckdb.connect(str(db)) as connection:
        connection.execute("INSERT INTO meta.owed VALUES ('clock_alignment', 2)")
    done = run("report", "stragglers", "--db", db)
    assert done.exit_code == 3
    assert WARNING in done.stderr


def test_a_capture_alone_owes_nothing(tmp_path: Path) -> None:
    db = tmp_path / "db"
    assert ingest(trace(tmp_path / "a.json"), db=db).exit_code == 0
    assert ask(db, OWED) == []


def test_a_log_of_a_killed_process_is_moved_by_an_ingest_of_nothing_new(tmp_path: Path) -> None:
    db, file = tmp_path / "db", trace(tmp_path / "a.json")
    assert ingest(file, db=db).exit_code == 0
    script = "import duckdb, os, sys; c = duckdb.connect(sys.argv[1]); "
    script += "c.execute(\"INSERT INTO kernel_rule VALUES (1, 'x', 'copy')\"); os._exit(9)"
    subprocess.run([sys.executable, "-c", script, str(db)], check=False)
    assert (tmp_path / "db.wal").exists()
    assert ingest(file, db=db).exit_code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json", "db"]
    with duckdb.connect(str(db), read_only=True) as connection:
        assert connection.execute("SELECT count(*) FROM kernel_rule").fetchall() == [(1,)]
