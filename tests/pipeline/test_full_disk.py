"""A full disk at any moment: what is reported as failed is not stored, and the next ingest continues from there.

A limit on file size simulates the disk.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from support import few_views
from support.command import run
from support.loading import ask, ingest, trace
from tracedb.storage.connection import STORAGE, quoted
from tracedb.storage.database_file import HEADER_BYTES, log_of


def limited(size: int, *paths: Path, db: Path) -> tuple[int, dict[str, str], list[str]]:
    """Ingest where no file can grow beyond ``size``; returns exit code, status by file name, and lines of stderr."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))  # Python ignores the signal of a write beyond it
    try:
        done = run("-q", "ingest", *paths, "--db", db, "--jobs", "1", "--format", "json")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    rows = json.loads(done.stdout)["rows"] if done.stdout else []
    return done.exit_code, {Path(row["path"]).name: row["status"] for row in rows}, done.stderr.splitlines()


def stored(db: Path) -> set[str]:
    return {Path(path).name for (path,) in ask(db, "SELECT path FROM capture")}


@pytest.mark.parametrize("room", [100, 5_000, 100_000, 1_000_000, 4_300_000])
def test_a_first_ingest_leaves_nothing_in_the_way(tmp_path: Path, room: int) -> None:
    files = [trace(tmp_path / f"{name}.json", 3 + place) for place, name in enumerate("ab")]
    db = tmp_path / "db"
    code, status, said = limited(room, *files, db=db)
    assert code == 1
    assert all(line.startswith("tracedb: error: ") for line in said), said
    assert f"{db}: cannot be " in said[0] and "File too large" in said[0]
    loaded = {name for name, state in status.items() if state == "complete"}
    assert (stored(db) if db.exists() else set()) == loaded
    assert ingest(*files, db=db, new=True).exit_code == 0
    assert stored(db) == {"a.json", "b.json"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json", "b.json", "db"]


@pytest.mark.parametrize("more", [0, 300_000, 800_000, 20_000_000])
def test_what_is_told_is_what_is_there(tmp_path: Path, more: int) -> None:
    db = tmp_path / "db"
    assert run("ingest", trace(tmp_path / "first.json"), "--db", db).exit_code == 0
    files = [trace(tmp_path / f"{name}.json", 4 + place) for place, name in enumerate("ab")]
    code, status, said = limited(db.stat().st_size + more, *files, db=db)
    assert all(line.startswith("tracedb: error: ") for line in said), said
    loaded = {name for name, state in status.items() if state == "complete"}
    assert stored(db) == {"first.json"} | loaded
    assert code == (0 if len(loaded) == 2 else 1)
    assert ingest(*files, db=db).exit_code == 0
    assert stored(db) == {"first.json", "a.json", "b.json"}
    assert not log_of(db).exists()


@pytest.mark.parametrize("room", [2_000, 20_000])
def test_a_log_that_cannot_be_written_is_told_as_that(tmp_path: Path, room: int) -> None:
    db = tmp_path / "db"
    assert run("ingest", trace(tmp_path / "first.json"), "--db", db).exit_code == 0
    file = trace(tmp_path / "a.json", 2_000)
    code, status, (said, _) = limited(room, file, db=db)
    assert (code, status, stored(db)) == (1, {"a.json": "failed"}, {"first.json"})
    assert (
        said == f"tracedb: error: {file}: {log_of(db)} cannot be written (File too large); make room and run it again"
    )


def test_what_an_earlier_process_committed_is_not_taken_back(tmp_path: Path) -> None:
    """It lies in the log, as a killed process leaves it."""
    db = tmp_path / "db"
    assert run("ingest", trace(tmp_path / "first.json"), "--db", db).exit_code == 0
    script = "import duckdb, os, sys; c = duckdb.connect(sys.argv[1]); c.execute('BEGIN'); "
    script += "c.execute(\"UPDATE capture SET path = 'moved'\"); c.execute('COMMIT'); os._exit(9)"
    assert subprocess.run([sys.executable, "-c", script, str(db)], check=False).returncode == 9
    before = log_of(db).stat().st_size
    code, status, _ = limited(db.stat().st_size, trace(tmp_path / "a.json", 4), db=db)
    assert (code, status) == (1, {"a.json": "failed"})
    assert log_of(db).stat().st_size == before
    assert stored(db) == {"moved"}


@pytest.mark.parametrize("content", [b"", bytes(4096), bytes(8) + b"DUCK" + bytes(500)])
class TestUnwritten:
    """A file that a run began and wrote nothing into."""

    def test_it_is_taken_over_with_its_log(self, tmp_path: Path, content: bytes) -> None:
        db = tmp_path / "db"
        db.write_bytes(content)
        log_of(db).write_bytes(b"of a run that failed to begin it")
        assert ingest(trace(tmp_path / "a.json"), db=db).exit_code == 0
        assert stored(db) == {"a.json"}
        assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json", "db"]

    def test_reports_say_what_it_is(self, tmp_path: Path, content: bytes) -> None:
        db = tmp_path / "db"
        db.write_bytes(content)
        done = run("report", "top-kernels", "--db", db)
        assert done.exit_code == 1
        assert done.stderr.startswith(f"tracedb: error: {db}: nothing was written into it yet; run ")


class TestUnfinished:
    @pytest.fixture(autouse=True)
    def few(self, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
        with few_views.shipped(tmp_path_factory.mktemp("cache")):
            yield

    def test_no_table_yet(self, tmp_path: Path) -> None:
        db = tmp_path / "db"
        with duckdb.connect() as connection:
            connection.execute(f"ATTACH {quoted(str(db))} AS new ({STORAGE})")
        assert db.stat().st_size >= HEADER_BYTES
        assert "nothing was written into" in run("report", "top-kernels", "--db", db).stderr
        assert ingest(trace(tmp_path / "a.json"), db=db).exit_code == 0
        assert stored(db) == {"a.json"}

    def test_tables_without_views(self, tmp_path: Path) -> None:
        db = tmp_path / "db"
        assert ingest(trace(tmp_path / "a.json"), db=db).exit_code == 0
        with duckdb.connect(str(db)) as connection:
            connection.execute("DROP SCHEMA v1 CASCADE; DELETE FROM meta.view_version")
        assert ingest(tmp_path / "a.json", db=db).exit_code == 0
        assert run("report", "top-kernels", "--db", db).exit_code == 0

    def test_a_table_that_an_earlier_tracedb_did_not_have(self, tmp_path: Path) -> None:
        db = tmp_path / "db"
        assert ingest(trace(tmp_path / "a.json"), db=db).exit_code == 0
        with duckdb.connect(str(db)) as connection:
            connection.execute("DROP TABLE meta.owed")
        assert run("report", "top-kernels", "--db", db).exit_code == 0
        assert ingest(trace(tmp_path / "b.json", 4), db=db).exit_code == 0
        assert ask(db, "SELECT count(*) FROM meta.owed") == [(0,)]
        assert ask(db, "SELECT comment FROM duckdb_tables() WHERE table_name = 'owed'") != [(None,)]
