"""If a reader fails, only the file that it was reading is lost, with a one-line message; the others are loaded."""

from __future__ import annotations

import json
import os
import sqlite3
import struct
import subprocess
import sys
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import pyarrow as pa
import pytest

from support.fakes import Failing, Fake, register
from support.loading import ask, ingest, trace
from tracedb.ingester import Capture, Rows
from tracedb.pipeline import discovery
from tracedb.pipeline import run as pipeline
from tracedb.storage import error_lines, schema

WORDS = [
    (KeyError("ts"), "internal fault of ingester odd in support.fakes line "),
    (TypeError("'<=' not supported"), "TypeError: '<=' not supported; please report it"),
    (ValueError(), "ValueError; please report it"),
    (OverflowError("Python int too large"), "OverflowError: Python int too large; please report it"),
    (RecursionError("maximum recursion depth exceeded"), "RecursionError: maximum recursion depth exceeded"),
    (AssertionError(), "AssertionError; please report it"),
    (MemoryError(), "not enough memory to read it"),
    (EOFError("ended early"), "damaged, cut, or of an unknown layout: EOFError: ended early"),
    (zlib.error("Error -3"), "damaged, cut, or of an unknown layout: error: Error -3"),
    (struct.error("unpack requires"), "damaged, cut, or of an unknown layout: error: unpack requires"),
    (sqlite3.DatabaseError("malformed"), "damaged, cut, or of an unknown layout: DatabaseError: malformed"),
    (msgspec.DecodeError("trailing characters"), "DecodeError: trailing characters (ingester odd in support.fakes"),
    (PermissionError(13, "Permission denied"), "[Errno 13] Permission denied"),
    (pa.ArrowInvalid("Float 1.5 was truncated"), "holds values that cannot be stored: Float 1.5 was truncated"),
]


def files(folder: Path, *contents: str) -> list[Path]:
    """Write one file of the ingester "odd" for each content; they differ in bytes where the content does."""
    paths = []
    for number, content in enumerate(contents):
        paths.append(folder / f"{number}.odd")
        paths[-1].parent.mkdir(exist_ok=True)
        paths[-1].write_text(content)
    return paths


def errors(stderr: str, path: Path) -> list[str]:
    start = f"tracedb: error: {path}: "
    return [line.removeprefix(start) for line in stderr.splitlines() if line.startswith(start)]


def stored(db: Path) -> list[str]:
    return [Path(path).name for (path,) in ask(db, "SELECT path FROM capture ORDER BY path")]


class TestOneFile:
    @pytest.mark.parametrize("where", ["find", "first", "later"])
    def test_costs_itself_only(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
        contents = {f"bad {number}": error for number, (error, _) in enumerate(WORDS)}
        register(monkeypatch, ("odd", Failing("odd", contents, where)))
        _, *bad, _ = files(tmp_path / "in", "good", *contents, "good too")
        trace(tmp_path / "in" / "x.json")
        done = ingest(tmp_path / "in", db=tmp_path / "db")
        assert done.exit_code == 1
        for path, (_, words) in zip(bad, WORDS, strict=True):
            (said,) = errors(done.stderr, path)
            assert words in said
        last = f"tracedb: error: {len(bad)} of {len(bad) + 3} files could not be loaded; the others are in "
        assert done.stderr.splitlines()[-1].startswith(last)
        assert stored(tmp_path / "db") == ["0.odd", f"{len(bad) + 1}.odd", "x.json"]
        failed = [row["path"] for row in json.loads(done.stdout)["rows"] if row["status"] == "failed"]
        assert sorted(failed) == sorted(map(str, bad))

    def test_as_a_library(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        register(monkeypatch, ("odd", Failing("odd", {"bad": KeyError("ts")}, "find")))
        _, bad = files(tmp_path / "in", "good", "bad")
        outcomes = pipeline.ingest(tmp_path / "in", db=tmp_path / "db")
        assert {outcome.path.name: outcome.error is None for outcome in outcomes} == {"0.odd": True, bad.name: False}

    def test_what_begins_early_fails_where_it_is_read(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("tracedb.pipeline.early_read.EARLY_FROM", 0)
        register(monkeypatch, ("odd", Failing("odd", {"bad": KeyError("ts")}, "begin")))
        (path,) = files(tmp_path / "in", "bad")
        assert ingest(path, db=tmp_path / "db").exit_code == 0

    def test_a_dry_run_says_it(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        register(monkeypatch, ("odd", Failing("odd", {"bad": KeyError("ts")}, "find")))
        good, bad = files(tmp_path / "in", "good", "bad")
        done = ingest(tmp_path / "in", db=tmp_path / "db", flags=["--dry-run"])
        assert done.exit_code == 1
        assert errors(done.stderr, bad)
        assert [row["path"] for row in json.loads(done.stdout)["rows"]] == [str(good)]

    @pytest.mark.parametrize(
        ("where", "error"),
        [
            ("find", KeyboardInterrupt()),
            ("begin", KeyboardInterrupt()),
            ("first", RuntimeError("Query interrupted")),
            ("later", KeyboardInterrupt()),
        ],
    )
    def test_ctrl_c_is_no_fault_of_a_file(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, error: BaseException
    ) -> None:
        monkeypatch.setattr("tracedb.pipeline.early_read.EARLY_FROM", 0)
        register(monkeypatch, ("odd", Failing("odd", {"bad": error}, where)))
        (bad,) = files(tmp_path / "in", "bad")
        done = ingest(bad, db=tmp_path / "db")
        assert (done.exit_code, done.stderr.splitlines()[-1]) == (130, "tracedb: error: interrupted")

    def test_an_interrupt_that_became_something_else(self) -> None:
        try:
            try:
                raise KeyboardInterrupt
            except KeyboardInterrupt:
                raise KeyError("left half done") from None
        except KeyError as error:
            assert error_lines.is_interrupt(error)


class Pairs(Fake):
    """An ingester that fails on two files seen together, and on neither alone."""

    def find(self, files: Sequence[Path]) -> list[Capture]:
        found = super().find(files)
        folders = [capture.files[0].parent for capture in found]
        if len(set(folders)) < len(folders):
            raise IndexError("two in one folder")
        return list(found)


def test_files_that_fail_together_cost_their_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row = Rows("capture", pa.table({"status": ["complete"]}))
    register(monkeypatch, ("odd", Pairs("odd", ".odd", [row])))
    files(tmp_path / "a", "1", "2")
    files(tmp_path / "b", "3")
    found = discovery.detect(discovery.discover([tmp_path]))
    assert [task.capture.files[0] for task in found.tasks] == [tmp_path / "b" / "0.odd"]
    assert [path for path, _ in found.failed] == [tmp_path / "a" / "0.odd", tmp_path / "a" / "1.odd"]


class TestRivals:
    def test_a_disputed_file_fails_alone(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        register(monkeypatch, ("odd", Failing("odd", {}, "")), ("rival", Rival()))
        _, disputed = files(tmp_path / "in", "good", "disputed")
        done = ingest(tmp_path / "in", db=tmp_path / "db")
        assert done.exit_code == 1
        assert errors(done.stderr, disputed) == ["both odd and rival recognise it; choose with --ingester NAME"]
        assert stored(tmp_path / "db") == ["0.odd"]
        chosen = ingest(disputed, db=tmp_path / "db", flags=["--ingester", "odd"])
        assert chosen.exit_code == 0

    def test_a_capture_goes_with_its_disputed_companion(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        register(monkeypatch, ("pair", Companions()), ("rival", Rival()))
        first, second = files(tmp_path / "in", "one", "disputed")
        found = discovery.detect([first, second])
        assert found.tasks == []
        assert [path for path, _ in found.failed] == [first, second]
        assert f"{second}, which belongs to it: both" in found.failed[0][1]


class Rival(Fake):
    """An ingester that claims files with the content "disputed"."""

    def __init__(self) -> None:
        super().__init__("rival", "")

    def find(self, files: Sequence[Path]) -> list[Capture]:
        return [Capture((path,)) for path in files if path.suffix == ".odd" and path.read_text() == "disputed"]


class Companions(Fake):
    """An ingester that takes all its files as one capture."""

    def __init__(self) -> None:
        super().__init__("pair", ".odd")

    def find(self, files: Sequence[Path]) -> list[Capture]:
        return [Capture(tuple(path for path in files if path.suffix == ".odd"))]


def relation(connection: duckdb.DuckDBPyConnection) -> list[Rows]:
    wide = connection.sql("SELECT 'no number' AS launch_id, 'x' AS name, 0 AS start_ns, 1 AS duration_ns")
    return [Rows("launch", wide), Rows("capture", pa.table({"status": ["complete"]}))]


def aborted(connection: duckdb.DuckDBPyConnection) -> Iterator[Rows]:
    """Fail within the transaction of the rows, keep that to itself, and ask for more."""
    yield Rows("launch", schema.arrow("launch").empty_table())
    try:
        connection.execute("SELECT CAST('x' AS INTEGER)")
    except duckdb.Error:
        connection.execute("SELECT 1")


class TestEngine:
    """What DuckDB says of values that do not fit, without its own words about queries."""

    @pytest.mark.parametrize("rows", [relation, aborted])
    def test_values_that_do_not_fit(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: Any) -> None:
        register(monkeypatch, ("odd", Fake("odd", ".odd", rows)))
        (bad,) = files(tmp_path / "in", "bad")
        trace(tmp_path / "in" / "x.json")
        done = ingest(tmp_path / "in", db=tmp_path / "db")
        (said,) = errors(done.stderr, bad)
        assert said.startswith("holds values that cannot be stored: Could not convert string '")
        assert said.endswith("please report it")
        assert not any(word in said for word in ("INSERT", "LINE", "Conversion Error", "TransactionContext", "aborted"))
        assert stored(tmp_path / "db") == ["x.json"]

    def test_an_engine_that_broke_is_replaced(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for number, where in enumerate(("first", "later")):
            error = duckdb.InternalException("INTERNAL Error: Attempted to access index 1")
            register(monkeypatch, ("odd", Failing("odd", {"bad": error}, where)))
            folder = tmp_path / str(number)
            _, bad, _ = files(folder, "good", "bad", "good too")
            done = ingest(folder, db=tmp_path / f"{number}.duckdb")
            assert errors(done.stderr, bad)
            assert stored(tmp_path / f"{number}.duckdb") == ["0.odd", "2.odd"]


MODULE = """
from pathlib import Path
import pyarrow as pa
from tracedb.ingester import Capture, Rows

class Odd:
    name = "odd"

    def find(self, files):
        return [Capture((path,)) for path in files if path.suffix == ".odd"]

    def read(self, capture, scratch, options):
        if capture.files[0].read_text() == "bad":
            raise {"ts": 1}["dur"]
        yield Rows("capture", pa.table({"status": ["complete"]}))

ingester = Odd()
"""


def test_in_worker_processes(tmp_path: Path) -> None:
    site = tmp_path / "site"
    (site / "odd-0.1.dist-info").mkdir(parents=True)
    (site / "odd-0.1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: odd\nVersion: 0.1\n")
    (site / "odd-0.1.dist-info" / "entry_points.txt").write_text("[tracedb.ingesters]\nodd = oddities:ingester\n")
    (site / "oddities.py").write_text(MODULE)
    _, bad, _ = files(tmp_path / "in", "good", "bad", "good too")
    command = [sys.executable, "-m", "tracedb", "ingest", str(tmp_path / "in"), "--db", str(tmp_path / "db")]
    environment = {**os.environ, "PYTHONPATH": str(site)}
    done = subprocess.run([*command, "--jobs", "2"], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 1
    assert errors(done.stderr, bad) == [
        "internal fault of ingester odd in oddities line 14: KeyError: 'dur'; please report it"
    ]
    assert "Traceback" not in done.stderr
    assert stored(tmp_path / "db") == ["0.odd", "2.odd"]
