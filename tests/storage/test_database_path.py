"""What --db accepts: only a path, identified by its bytes; messages refer to that path."""

from __future__ import annotations

import csv
import gzip
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from support.command import run
from support.loading import trace
from tracedb.errors import TracedbError
from tracedb.storage import connection as database
from tracedb.storage import spill_folder
from tracedb.storage.database_file import absolute

READERS = (
    ("report", "top-kernels"),
    ("sql", "SELECT 1"),
    ("doctor",),
    ("views",),
    ("schema",),
    ("compare", "a=1", "a=2"),
    ("shell", "--builtin"),
    ("ingest", "{trace}"),
)
ENGINE = ("Error:", "INSERT INTO", "LINE 1", "Traceback", "IO Error", "extension")


def make(path: Path, kind: str) -> None:
    if kind == "SQLite":
        with sqlite3.connect(path) as connection:
            connection.execute("CREATE TABLE t (x)")
        connection.close()
    elif kind == "gzip":
        path.write_bytes(gzip.compress(b"{}"))
    elif kind == "theirs":
        duckdb.connect(str(path)).execute("CREATE TABLE theirs AS SELECT 1").close()
    elif kind == "newer":
        duckdb.connect(str(path)).execute("CREATE TABLE theirs AS SELECT 1").close()
        content = bytearray(path.read_bytes())
        content[12:20] = (1234).to_bytes(8, "little")
        path.write_bytes(content)
    elif kind == "cut":
        duckdb.connect(str(path)).execute("CREATE TABLE theirs AS FROM range(100_000)").close()
        path.write_bytes(path.read_bytes()[:20_000])
    elif kind == "folder":
        path.mkdir()
    else:
        contents = {"empty": b"", "Parquet": b"PAR1....PAR1", "JSON": b' {"traceEvents": []}', "text": b"a,b\n1,2\n"}
        path.write_bytes(contents[kind])


SAID = {
    "SQLite": "this is SQLite, not a tracedb database; `tracedb ingest FILE` reads nsys exports",
    "Parquet": "this is Parquet, not a tracedb database; `tracedb ingest FILE` reads nsys exports",
    "gzip": "this is gzip, not a tracedb database; `tracedb ingest FILE` reads",
    "JSON": "this is JSON, not a tracedb database; `tracedb ingest FILE` reads",
    "text": "this is text, not a tracedb database; `tracedb ingest FILE` reads",
    "folder": "is a folder, not a database; name a file with --db",
    "theirs": "a DuckDB file, but not one of tracedb's",
    "newer": "has DuckDB's storage version 1234, and the installed DuckDB",
    "cut": "is damaged or cut short",
}


@pytest.mark.parametrize("command", READERS, ids=[command[0] for command in READERS])
@pytest.mark.parametrize("kind", SAID)
def test_what_is_no_database_of_ours_is_named_in_one_line(kind: str, command: tuple[str, ...], tmp_path: Path) -> None:
    path = tmp_path / "t.duckdb"
    make(path, kind)
    before = path.read_bytes() if path.is_file() else b""
    arguments = [text.replace("{trace}", str(trace(tmp_path / "rank0.json"))) for text in command]
    done = run(*arguments, "--db", path)
    assert (done.exit_code, done.stdout) == (1, "")
    assert SAID[kind] in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not [word for word in ENGINE if word in done.stderr.removeprefix("tracedb: error:")]
    assert (path.read_bytes() if path.is_file() else b"") == before
    assert sorted(item.name for item in tmp_path.iterdir()) == ["rank0.json", "t.duckdb"]


def test_an_empty_file_answers_nothing(tmp_path: Path) -> None:
    make(tmp_path / "t.duckdb", "empty")
    done = run("report", "top-kernels", "--db", tmp_path / "t.duckdb")
    assert (done.exit_code, "nothing was written into it yet" in done.stderr) == (1, True)


PROTOCOLS = ("md:x", "postgres:dbname=x", "ducklake:x.ducklake", "sqlite:x", "mysql:x", ":memory:", "file:x", "quack:x")


@pytest.mark.parametrize("name", PROTOCOLS)
def test_the_name_is_always_a_path(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    done = run("report", "top-kernels", "--db", name)
    assert (done.exit_code, f"{name}: no such database" in done.stderr) == (1, True)
    assert list(tmp_path.iterdir()) == []
    assert run("ingest", trace(tmp_path / "rank0.json", 3), "--db", name).exit_code == 0
    assert (tmp_path / name).is_file()
    assert run("sql", "SELECT count(*) FROM kernel_event", "--db", name, "--format", "csv").stdout.split() == [
        "count_star()",
        "3",
    ]
    assert run("compare", name, name, "--db", name).exit_code == 0  # of itself: no difference
    assert not list(tmp_path.rglob("*extension*"))


@pytest.mark.parametrize("name", ["s3://bucket/x", "http://localhost:1/x.duckdb", "~/x.duckdb", "gs://b/x"])
def test_an_address_is_a_folder_that_is_not_there(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = run("ingest", trace(tmp_path / "rank0.json"), "--db", name)
    assert (done.exit_code, "there is no folder" in done.stderr) == (1, True)
    assert [item.name for item in tmp_path.iterdir()] == ["rank0.json"]


def test_no_extension_is_loaded_or_fetched() -> None:
    with database.in_memory() as connection:
        rows = connection.execute(
            "SELECT name, value FROM duckdb_settings() WHERE name LIKE 'auto%_known_extensions' ORDER BY name"
        ).fetchall()
    assert rows == [("autoinstall_known_extensions", "false"), ("autoload_known_extensions", "false")]


def test_every_connection_comes_from_one_place() -> None:
    source = Path(database.__file__).parents[1]
    places = [path.name for path in source.rglob("*.py") if "duckdb.connect(" in path.read_text(encoding="utf-8")]
    assert places == ["connection.py"]


@pytest.mark.parametrize("name", ["a[1]*.duckdb", "it's.duckdb", "50% #2.duckdb", "new\nline", 'q"$(x);', "{a}.duckdb"])
def test_odd_names_work(name: str, tmp_path: Path) -> None:
    folder = tmp_path / name / "run"
    source = trace(folder / name / "rank0.json", 3)
    done = run("ingest", folder, "--db", folder / name.replace("/", "_") / "x.duckdb")
    assert done.exit_code == 0, done.stderr
    out = folder / f"{name}.csv"
    done = run("sql", "SELECT path FROM capture", "--db", folder / name / "x.duckdb", "-o", out)
    assert done.exit_code == 0
    with out.open(newline="") as written:
        assert list(csv.reader(written)) == [["path"], [str(source)]]


@pytest.mark.parametrize("letter", ["?", "\\"])
def test_letters_that_duckdb_reads_otherwise_are_refused_with_the_reason(letter: str, tmp_path: Path) -> None:
    odd = tmp_path / f"fo{letter}o"
    source = trace(odd / f"tr{letter}ace" / "rank0.json", 3)
    (tmp_path / "link").symlink_to(odd)
    for path in (odd / "x.duckdb", tmp_path / f"x{letter}.duckdb", tmp_path / "link" / "x.duckdb"):
        for command in (("ingest", source), ("report", "top-kernels")):
            done = run(*command, "--db", path)
            assert (done.exit_code, f"DuckDB cannot use a database whose path holds {letter}" in done.stderr) == (
                1,
                True,
            )
            assert not path.exists()
    assert run("ingest", source, "--db", tmp_path / "x.duckdb").exit_code == 0
    assert run("report", "top-kernels", "--db", tmp_path / "x.duckdb", "-o", odd / "o.csv").exit_code == 0
    assert (odd / "o.csv").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_or_file_that_cannot_be_written_is_blamed_on_itself(tmp_path: Path) -> None:
    db = tmp_path / "run" / "t.duckdb"
    assert run("ingest", trace(tmp_path / "a" / "rank0.json"), "--db", db).exit_code == 1  # no folder
    db.parent.mkdir()
    assert run("ingest", tmp_path / "a", "--db", db).exit_code == 0
    other = trace(tmp_path / "b" / "rank0.json", 5)
    db.chmod(0o400)
    assert f"{db}: the file cannot be written" in run("ingest", other, "--db", db).stderr
    db.chmod(0o600)
    db.parent.chmod(0o500)
    try:
        assert f"the folder {db.parent} cannot be written" in run("ingest", other, "--db", db).stderr
        assert f"the folder {db.parent} cannot be written" in run("ingest", other, "--db", db.with_name("x")).stderr
        assert run("report", "top-kernels", "--db", db).exit_code == 0
    finally:
        db.parent.chmod(0o700)


HOLDS = """
import sys, time
from pathlib import Path
from tracedb.storage.spill_folder import spill_folder, temporary_folder
with spill_folder(Path(sys.argv[1])) as beside, temporary_folder() as elsewhere:
    (Path(beside) / "block").write_bytes(b"x")
    (Path(elsewhere) / "block").write_bytes(b"x")
    print(beside, elsewhere, flush=True)
    time.sleep(600)
"""


@pytest.mark.skipif(not spill_folder.BOOT.exists(), reason="the system does not tell when it was started")
def test_what_a_killed_run_left_goes_with_any_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr("tempfile.tempdir", None)
    source = trace(tmp_path / "rank0.json", 3)
    db = tmp_path / "run" / "t.duckdb"
    db.parent.mkdir()
    assert run("ingest", source, "--db", db).exit_code == 0
    commands = [[text.replace("{trace}", str(source)) for text in command] for command in READERS]
    holder = subprocess.Popen([sys.executable, "-c", HOLDS, str(db)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    left = [Path(text) for text in holder.stdout.readline().split()]
    assert [path.parent for path in left] == [db.parent, tmp_path / "tmp"]
    assert {path.stat().st_mode & 0o777 for path in left} == {0o700}
    for command in commands:
        run(*command, "--db", db, stdin="")
        assert all(path.exists() for path in left), command
    os.kill(holder.pid, signal.SIGKILL)
    holder.wait()
    for command in commands:
        for path in left:
            if not path.exists():  # the command before has removed it
                path.mkdir(0o700)
                (path / "block").write_bytes(b"x")
        run(*command, "--db", db, stdin="")
        assert [item.name for item in db.parent.iterdir()] == ["t.duckdb"], command
        assert list((tmp_path / "tmp").iterdir()) == [], command


def test_a_connection_of_the_library_has_a_folder_as_long_as_it_lives(tmp_path: Path) -> None:
    db = tmp_path / "t.duckdb"
    run("ingest", trace(tmp_path / "rank0.json"), "--db", db)
    connection = database.connect(db)
    assert len(list(tmp_path.glob(".tracedb-*"))) == 1
    assert connection.execute("SELECT count(*) FROM kernel_event").fetchall() == [(3,)]
    connection.close()
    del connection
    assert list(tmp_path.glob(".tracedb-*")) == []


def test_a_relative_name_is_made_absolute_and_never_resolved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert absolute(Path("md:x")) == tmp_path / "md:x"
    with pytest.raises(TracedbError, match="holds "):
        absolute(Path("a?b"))


def test_a_block_that_was_changed_is_told_by_file_and_place(tmp_path: Path) -> None:
    db = tmp_path / "t.duckdb"
    assert run("ingest", trace(tmp_path / "rank0.json", 20_000), "--db", db).exit_code == 0
    whole = db.read_bytes()
    block = 262_144
    said = []
    query, report = ("sql", "SELECT sum(duration_ns), min(name) FROM kernel_event"), ("report", "kernels")
    for number, start in enumerate(range(3 * 4096 + 100_000, len(whole), block)):
        db.write_bytes(whole[:start] + bytes([whole[start] ^ 0xFF]) + whole[start + 1 :])
        for command in (query,) if number % 3 else (query, report):
            done = run(*command, "--db", db)
            assert done.exit_code in (0, 1)
            lines = [line for line in done.stderr.splitlines() if line.startswith("tracedb: error:")]
            said += lines
            assert all(f"{db}: " in line and "damaged" in line and "checksum" not in line for line in lines), lines
    assert [line for line in said if "is damaged at byte" in line]
