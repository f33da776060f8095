"""Worker processes killed around a commit: exactly what is in the database is reported as loaded."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from support.command import run
from support.loading import ask, ingest, trace
from support.traces import Raw, kernel, launched, write
from tracedb.pipeline import worker_pool
from tracedb.storage import lake_manifest
from tracedb.storage.lake_store import Store

DYING = """
import os, signal
from tracedb.pipeline import batch_load, capture_load, worker_process
from tracedb.storage import lake_manifest, lake_tables
calls = 0
def armed(owner, name):
    original = getattr(owner, name)
    def replaced(*given):
        global calls
        result = original(*given)
        calls += 1
        if calls == NTH:
            try:
                os.unlink(TOKEN)  # which one process can do
            except FileNotFoundError:
                return result
            os.kill(os.getpid(), signal.SIGKILL)
        return result
    setattr(owner, name, replaced)
armed(OWNER, NAME)
worker_process.main()
"""
BEFORE_COMMIT = ("capture_load.Job", "write")
AFTER_COMMIT = ("capture_load.Job", "add_to")
AFTER_CLOSING = ("batch_load", "_write")
BEFORE_WRITING = ("lake_tables", "layout")
AFTER_ENTRY = ("lake_manifest", "write_entry")


@pytest.fixture
def dying(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Have the first worker that calls a function so many times killed at the end of that call."""

    def arm(function: tuple[str, str], nth: int = 1) -> None:
        token = tmp_path / "token"
        token.touch()
        program = DYING.replace("OWNER", function[0]).replace("NAME", repr(function[1]))
        program = program.replace("NTH", str(nth)).replace("TOKEN", repr(str(token)))
        monkeypatch.setattr(worker_pool, "QUIET_START", program.replace("{", "{{").replace("}", "}}"))

    yield arm
    assert not (tmp_path / "token").exists(), "no worker was killed"


def account(stdout: str) -> dict[str, dict[str, Any]]:
    """Return the row of each file in the account, by the file's name."""
    return {Path(row["path"]).name: row for row in json.loads(stdout)["rows"]}


def stored(db: Path) -> dict[str, list[Any]]:
    rows = ask(
        db,
        """SELECT path, capture_id, rank, status, events_read, rows_written, events_skipped,
                  (SELECT count(*) FROM kernel_event AS k WHERE k.capture_id = c.capture_id AND k.kind = 'kernel')
           FROM capture AS c""",
    )
    return {Path(path).name: list(row) for path, *row in rows}


def told(row: dict[str, Any]) -> list[Any]:
    names = ("capture_id", "rank", "status", "events_read", "rows_written", "events_skipped", "kernels")
    return [row[name] for name in names]


@pytest.mark.parametrize("moment", [AFTER_COMMIT, AFTER_CLOSING])
def test_what_a_killed_worker_committed_is_loaded(tmp_path: Path, dying: Any, moment: tuple[str, str]) -> None:
    for rank in range(3):
        trace(tmp_path / "in" / f"rank{rank}.json", 5 + rank, rank)
    dying(moment)
    done = ingest(tmp_path / "in", db=tmp_path / "db", jobs=2)
    rows = account(done.stdout)
    assert {name: told(row) for name, row in rows.items()} == stored(tmp_path / "db")
    assert {name: row["kernels"] for name, row in rows.items()} == {f"rank{rank}.json": 5 + rank for rank in range(3)}
    assert done.exit_code == 0, done.stderr
    assert "3 captures loaded, 0 known before, 0 failed" in done.stderr
    assert ask(tmp_path / "db", "SELECT count(*) FROM meta.owed") == [(0,)]


def test_what_a_killed_worker_entered_into_a_lake_is_loaded(tmp_path: Path, dying: Any) -> None:
    for rank in range(3):
        trace(tmp_path / "in" / f"rank{rank}.json", 5 + rank, rank)
    dying(AFTER_ENTRY)
    done = run("ingest", tmp_path / "in", "--lake", tmp_path / "lake", "--jobs", "2", "--format", "json")
    assert done.exit_code == 0, done.stderr
    assert "3 captures loaded, 0 known before, 0 failed" in done.stderr
    held = {Path(item.path or "").name: item.capture_id for item in lake_manifest.read(Store(tmp_path / "lake")).held()}
    assert {name: row["capture_id"] for name, row in account(done.stdout).items()} == held


def test_a_damaged_trace_of_a_lake_whose_worker_is_killed_has_failed(tmp_path: Path, dying: Any) -> None:
    """Its old entry is there, and none of its files was written again."""
    for rank in range(2):
        trace(tmp_path / "in" / f"rank{rank}.json", 5 + rank, rank)
    words = ("ingest", tmp_path / "in", "--lake", tmp_path / "lake", "--jobs", "2", "--format", "json")
    assert run(*words).exit_code == 0
    for path in (tmp_path / "lake" / "kernel_event").rglob("*.parquet"):
        path.unlink()
    dying(BEFORE_WRITING)
    done = run(*words)
    assert sorted(row["status"] for row in account(done.stdout).values()) == ["complete", "failed"]
    assert done.exit_code == 1


def test_of_several_files_of_a_killed_worker_each_is_loaded_once(tmp_path: Path, dying: Any) -> None:
    """The worker has committed two of four; the others are tried again, and none is reported as known before."""
    for rank in range(16):
        trace(tmp_path / "in" / f"rank{rank}.json", 5 + rank, rank)
    dying(AFTER_COMMIT, nth=2)
    done = ingest(tmp_path / "in", db=tmp_path / "db", jobs=2)
    assert {name: told(row) for name, row in account(done.stdout).items()} == stored(tmp_path / "db")
    assert done.exit_code == 0, done.stderr
    assert "16 captures loaded, 0 known before, 0 failed" in done.stderr


def test_what_a_killed_worker_did_not_commit_has_failed(tmp_path: Path, dying: Any) -> None:
    for rank in range(2):
        trace(tmp_path / "in" / f"rank{rank}.json", 5 + rank, rank)
    dying(BEFORE_COMMIT)
    done = ingest(tmp_path / "in", db=tmp_path / "db", jobs=2)
    rows, there = account(done.stdout), stored(tmp_path / "db")
    assert sorted(row["status"] for row in rows.values()) == ["complete", "failed"]
    assert {name: told(row) for name, row in rows.items() if row["status"] != "failed"} == there
    assert done.exit_code == 1
    assert f"died (exit status {-signal.SIGKILL}" in done.stderr
    again = ingest(tmp_path / "in", db=tmp_path / "db", jobs=1)
    assert again.exit_code == 0
    assert "1 capture loaded, 1 known before, 0 failed" in again.stderr


def test_strict_sees_the_warnings_of_what_a_killed_worker_committed(tmp_path: Path, dying: Any) -> None:
    for number in range(2):
        odd = kernel(10_000, Raw("-"), "odd")
        write(tmp_path / "in" / f"{number}.json", [*launched(3 + number), odd])
    dying(AFTER_COMMIT)
    done = ingest(tmp_path / "in", db=tmp_path / "db", jobs=2, flags=["--strict"])
    assert sorted(row["status"] for row in account(done.stdout).values()) == ["repaired"] * 2
    assert done.exit_code == 1
    assert "--strict: events were skipped or repaired in 2 files" in done.stderr
