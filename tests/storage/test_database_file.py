"""The file that is written: not a tracedb file, locked, inaccessible."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from support.loading import ask, ingest, trace
from tracedb.pipeline import discovery
from tracedb.pipeline.batch_load import load
from tracedb.pipeline.task import Request
from tracedb.storage.connection import attached, open_read_only, workbench


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

    def test_older_shells_can_read_the_database(self, tmp_path: Path) -> None:
        ingest(trace(tmp_path / "a.json"), db=tmp_path / "db", new=True)
        with duckdb.connect() as connection:
            connection.execute(f"ATTACH '{tmp_path / 'db'}' AS t (READ_ONLY)")
            (tags,) = connection.execute(
                "SELECT tags FROM duckdb_databases() WHERE database_name = 't'"
            ).fetchone() or ({},)
        assert tags["storage_version"].startswith("v1.2.0")

    def test_a_database_open_elsewhere_is_reported_with_its_process(self, tmp_path: Path) -> None:
        db = tmp_path / "db"
        ingest(trace(tmp_path / "a.json"), db=db)
        script = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print('open', flush=True); sys.stdin.read()"
        command = [sys.executable, "-c", script, str(db)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "open\n"
            done = ingest(trace(tmp_path / "b.json", 4), db=db, flags=["--wait", "0"])
            assert done.exit_code == 1
            expected = f"tracedb: error: {db}: process {holder.pid} has the database open; close it there"
            assert [line.startswith(expected) for line in done.stderr.splitlines()] == [True]
            assert done.stdout == ""
            holder.communicate("")
        assert ingest(tmp_path / "b.json", db=db).exit_code == 0

    def test_an_ingest_waits_for_a_database_in_use(self, tmp_path: Path) -> None:
        db = tmp_path / "db"
        ingest(trace(tmp_path / "a.json"), db=db)
        found = discovery.detect([trace(tmp_path / "b.json", 4)])
        script = "import duckdb, sys, time; c = duckdb.connect(sys.argv[1]); print('open', flush=True); time.sleep(1.5)"
        command = [sys.executable, "-c", script, str(db)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "open\n"
            (outcome,) = load(found.tasks, Request((), db, first_capture_id=2), {})
        assert (outcome.error, len(outcome.loaded)) == (None, 1)

    def test_what_several_captures_commit_is_moved_into_it_once(self, tmp_path: Path) -> None:
        wal = tmp_path / "db.wal"
        with workbench("100MB", 1, tmp_path / "db") as connection, attached(connection, tmp_path / "db"):
            connection.execute("CREATE TABLE main.texts (value VARCHAR)")
            for _ in range(20):
                connection.execute("INSERT INTO main.texts SELECT repeat('x', 1_000_000)")
            assert wal.stat().st_size > 19_000_000
        assert not wal.exists()
        assert ask(tmp_path / "db", "SELECT count(*) FROM texts") == [(20,)]


def test_views_over_many_others_are_planned_quickly_in_a_small_database(
    sample: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a large one, what the optimization gives to ``queue_depth`` is more than planning costs."""

    def left_out() -> str:
        with open_read_only(sample) as connection:
            ((found,),) = connection.execute("SELECT current_setting('disabled_optimizers')").fetchall()
        return str(found)

    known = duckdb.execute("SELECT name FROM duckdb_optimizers() WHERE name = 'projection_pullup'").fetchall()
    assert left_out() == ("projection_pullup" if known else "")
    monkeypatch.setattr("tracedb.storage.connection.SMALL", 0)
    assert left_out() == ""
