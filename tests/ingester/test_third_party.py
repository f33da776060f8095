"""A third-party ingester works like a built-in one: installed beside tracedb it is listed, used and guarded."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.shipped import INGESTERS

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "third_party"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the example installed, to be put on the path."""
    source = tmp_path_factory.mktemp("source") / "third_party"
    shutil.copytree(EXAMPLE, source)
    target = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index"]
    command += ["--no-deps", "--no-build-isolation", "--target", str(target), str(source)]
    subprocess.run(command, check=True, capture_output=True)
    return target


def broken(site: Path) -> Path:
    """Register an ingester whose module does not exist."""
    folder = site / "broken-0.1.dist-info"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 0.1\n")
    (folder / "entry_points.txt").write_text("[tracedb.ingesters]\nbroken = no_such_module:ingester\n")
    return site


def tracedb(*arguments: str | Path, path: list[Path]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tracedb", *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path))}
    return subprocess.run(
        command, capture_output=True, text=True, env=environment, check=False, stdin=subprocess.DEVNULL
    )


def rows(done: subprocess.CompletedProcess[str]) -> list[dict[str, object]]:
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["rows"]
    assert isinstance(found, list)
    return found


def test_it_is_listed_beside_the_shipped_ones(site: Path) -> None:
    listed = rows(tracedb("ingesters", "--format", "json", path=[site]))
    assert {"name": "kernel-csv", "distribution": "tracedb-kernelcsv", "version": "0.1.0"} in listed
    assert {item["name"] for item in listed} == {"kernel-csv", *INGESTERS}


def test_its_files_are_ingested_and_reports_work(site: Path, tmp_path: Path) -> None:
    db = tmp_path / "run.duckdb"
    folder = tmp_path / "256thread"
    folder.mkdir()
    shutil.copy(EXAMPLE / "rank0.csv", folder)
    trace = next((ROOT / "examples" / "run").rglob("trace_rank1.json.gz"))
    shutil.copy(trace, folder)
    account = rows(tracedb("ingest", folder, "--db", db, "--format", "json", path=[site]))
    assert [(item["rank"], item["status"], item["kernels"]) for item in account] == [
        (0, "complete", 4),
        (1, "complete", 300),
    ]
    query = "FROM capture ORDER BY capture_id"  # two processes load: which of them writes first is a race
    capture, other = rows(tracedb("sql", query, "--db", db, "--format", "json", path=[site]))
    assert (other["capture_id"], other["source"]) == (2, "torch")
    assert (capture["source"], capture["labels"]) == ("kernel-csv", {"threads": "256"})
    assert capture["ingester"] == "tracedb-kernelcsv 0.1.0"
    report = ("report", "matmul-fraction", "--db", db, "--source", "kernel-csv", "--format", "json")
    classes = {item["class"]: item["total_ns"] for item in rows(tracedb(*report, path=[site]))}
    assert classes == {"matmul": 93_000, "collective": 60_000, "elementwise": 3_500}
    report = ("report", "collective-overlap", "--db", db, "--source", "kernel-csv", "--format", "json")
    (overlap,) = rows(tracedb(*report, path=[site]))
    assert (overlap["collective_ns"], overlap["overlapped_ns"]) == (60_000, 32_000)
    again = rows(tracedb("ingest", folder, "--db", db, "--format", "json", path=[site]))
    assert [item["status"] for item in again] == ["known", "known"]


def test_a_bad_line_is_accounted_for(site: Path, tmp_path: Path) -> None:
    path = tmp_path / "rank3.csv"
    path.write_text((EXAMPLE / "rank0.csv").read_text() + "late,0,7,1.5,10\n\n,0,7,1,10\nnegative,0,7,1,-1\n")
    db = tmp_path / "run.duckdb"
    (account,) = rows(tracedb("ingest", path, "--db", db, "--format", "json", path=[site]))
    assert (account["status"], account["kernels"]) == ("repaired", 4)
    assert (account["events_read"], account["rows_written"], account["events_skipped"]) == (7, 4, 3)
    assert tracedb("ingest", path, "--strict", "--db", tmp_path / "strict.duckdb", path=[site]).returncode == 1


def test_a_file_that_cannot_be_used_is_named(site: Path, tmp_path: Path) -> None:
    path = tmp_path / "other.csv"
    path.write_text("# kernel-csv 1\nname,start\n")
    done = tracedb("ingest", path, "--db", tmp_path / "run.duckdb", path=[site])
    assert done.returncode == 1
    assert f"{path}: the second line is 'name,start'" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_broken_outsider_only_warns(site: Path, tmp_path: Path) -> None:
    path = [site, broken(tmp_path / "site")]
    done = tracedb("ingest", EXAMPLE / "rank0.csv", "--db", tmp_path / "run.duckdb", path=path)
    assert done.returncode == 0
    warning = "tracedb: warning: ingester broken of broken cannot be loaded: No module named 'no_such_module'"
    assert warning in done.stderr
    listed = tracedb("ingesters", "--format", "csv", path=path)
    assert "broken,broken,0.1" in listed.stdout.splitlines()


def test_a_broken_outsider_asked_for_by_name_is_an_error(site: Path, tmp_path: Path) -> None:
    path = [site, broken(tmp_path / "site")]
    db = tmp_path / "run.duckdb"
    done = tracedb("ingest", EXAMPLE / "rank0.csv", "--ingester", "broken", "--db", db, path=path)
    assert done.returncode == 2
    assert "tracedb: error: ingester broken of broken cannot be loaded" in done.stderr
    assert "Traceback" not in done.stderr
    assert not db.exists()


def test_a_name_that_is_not_installed_is_an_error_that_lists_what_is(site: Path, tmp_path: Path) -> None:
    done = tracedb("ingest", EXAMPLE, "--ingester", "perfetto", "--db", tmp_path / "run.duckdb", path=[site])
    assert done.returncode == 2
    assert (
        f"no ingester named 'perfetto' is installed; there are: {', '.join(sorted(['kernel-csv', *INGESTERS]))}"
        in done.stderr
    )


STRANGER = """
import sys
from pathlib import Path

import tracedb
from tracedb import Capture, Ingester, Options, Rows, __version__, connect, fit, ingest, predict, predict_step
from tracedb.errors import DatabaseBusy, NotCaptured, ReadError, TracedbError, UsageError
from tracedb.ingester import (
    Begun, Described, Eager, ReadAgain, Registered, Thorough, Weighed, descriptions, load, registered
)
from tracedb.ingester import Capture as SameCapture
from tracedb.ingester import Ingester as SameIngester
from tracedb.ingester import Options as SameOptions
from tracedb.ingester import Rows as SameRows
from tracedb.ingester.issues import Account
from tracedb.ingester.rows import CaptureRow, Device, capture_row, device_rows, issue_rows
from tracedb.storage.schema import arrow

assert (SameCapture, SameIngester, SameOptions, SameRows) == (Capture, Ingester, Options, Rows)
assert set(tracedb.__all__) == {
    "Capture", "Ingester", "Options", "Rows", "__version__",
    "connect", "fit", "ingest", "predict", "predict_step", "report",
}
assert all(callable(function) for function in (fit, predict, predict_step, tracedb.report))
assert all(issubclass(error, TracedbError) for error in (DatabaseBusy, NotCaptured, ReadError, UsageError))
assert issubclass(ReadAgain, Exception) and __version__[0].isdigit()


class Full:
    name = "full"
    reads_all_first = True
    memory_limit = "100MB"

    def describe(self):
        return {"reader": "plain"}

    def find(self, files):
        return [Capture((path,), rank=3, duplicates=(), refused=None) for path in files]

    def begin(self, capture, options):
        return self

    def close(self):
        pass

    def read(self, capture, scratch, options):
        options.progress(1)
        account = Account()
        account.events_read = 1
        account.lost("odd", 1, "one event is odd")
        yield Rows("device", device_rows([Device(device_id=0, is_used=True)]))
        yield Rows("ingest_issue", issue_rows(account))
        row = CaptureRow(status="complete", events_read=1, events_skipped=account.skipped, rows_written=0)
        yield Rows("capture", capture_row(row), part=0, is_ordered=True)


full = Full()
assert all(isinstance(full, kind) for kind in (Ingester, Described, Eager, Thorough, Weighed)) and Begun
(capture,) = full.find([Path("x")])
rows = list(full.read(capture, None, Options(cores=1)))
assert [item.table for item in rows] == ["device", "ingest_issue", "capture"]
for item in rows:
    assert set(item.data.schema.names) <= set(arrow(item.table).names), item.table

found = {item.name: item for item in registered()}
assert isinstance(found["kernel-csv"], Registered)
((item, reader),) = load("kernel-csv")
assert (item, reader.name) == (found["kernel-csv"], "kernel-csv")
assert "torch" in dict(descriptions())

(outcome,) = ingest(sys.argv[1], db=sys.argv[2], label={"run": "a"})
assert outcome.error is None and outcome.loaded[0].kernels == 4
with connect(sys.argv[2]) as db:
    print(db.sql("SELECT count(*), any_value(labels['run']) FROM v1.kernels").fetchall())
"""


def test_public_names_serve_a_stranger(site: Path, tmp_path: Path) -> None:
    """All names that the documentation gives to other programs, used in a process of its own beside an installation."""
    script = tmp_path / "stranger.py"
    script.write_text(STRANGER)
    command = [sys.executable, str(script), str(EXAMPLE / "rank0.csv"), str(tmp_path / "run.duckdb")]
    environment = {**os.environ, "PYTHONPATH": str(site)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[(4, 'a')]\n"
