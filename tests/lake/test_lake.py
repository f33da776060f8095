"""A lake answers what a database answers, whoever filled it, however often."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

import tracedb
from support.command import run
from support.lake_comparison import differences, numbers, public_views, rows
from support.loading import trace
from tracedb.storage import lake_manifest, lake_tables

ROOT = Path(__file__).resolve().parents[2]
ONE_RUN = ROOT / "examples" / "run" / "sweep_sample" / "256thread"


def files(lake: Path) -> list[str]:
    """Return the Parquet files."""
    return sorted(path.relative_to(lake).as_posix() for path in lake.rglob("*.parquet"))


def test_every_view_gives_what_it_gives_over_the_database(sample: Path, exported: Path) -> None:
    with tracedb.connect(sample) as database, tracedb.connect(exported) as lake:
        for connection in (database, lake):
            connection.execute("SET threads = 1")  # several cost more than they gain on a few rows
        of = numbers(database, lake)
        differing = {
            name: found[:1]
            for name in public_views()
            if (found := differences(rows(database, f"v1.{name}", {}), rows(lake, f"v1.{name}", of)))
        }
    assert differing == {}


def test_an_ingest_writes_what_an_export_writes(ingested: Path, exported: Path) -> None:
    assert files(ingested) == files(exported)


@pytest.mark.parametrize("name", ["stragglers", "gemm-variance", "top-kernels", "collective-overlap"])
def test_a_report_is_the_same(sample: Path, exported: Path, name: str) -> None:
    ours = run("--lake", exported, "report", name, "--format", "json", "--by", "rank")
    theirs = run("report", name, "--db", sample, "--format", "json", "--by", "rank")
    assert ours.exit_code == theirs.exit_code == 0
    first, second = json.loads(ours.stdout), json.loads(theirs.stdout)
    assert first["rows"] == second["rows"]
    assert [{**item, "type": ""} for item in first["columns"]] == [{**item, "type": ""} for item in second["columns"]]


class TestLayout:
    def test_a_file_is_named_after_its_content(self, exported: Path) -> None:
        for name in files(exported):
            assert Path(name).stem == f"part-{hashlib.sha256((exported / name).read_bytes()).hexdigest()}"

    def test_no_name_is_hidden_from_an_engine(self, exported: Path) -> None:
        names = [part for path in exported.rglob("*") for part in path.relative_to(exported).parts]
        assert [name for name in names if name.startswith(("_", "."))] == []

    def test_types_are_those_that_every_engine_has(self, exported: Path) -> None:
        with duckdb.connect() as connection:
            for table, columns in lake_tables.declared().items():
                for path in sorted((exported / table).rglob("*.parquet"))[:1]:
                    found = connection.execute(f"DESCRIBE FROM read_parquet('{path}', hive_partitioning = false)")
                    kinds = {name: kind for name, kind, *_ in found.fetchall()}
                    assert kinds == {name: lake_tables.stored_type(name, kind) for name, kind in columns.items()}
                    assert not {"HUGEINT", "UBIGINT", "UHUGEINT"} & set(kinds.values())

    def test_small_tables_are_not_divided_and_large_ones_are(self, exported: Path) -> None:
        assert {name.count("/") for name in files(exported) if name.startswith(("capture/", "device/"))} == {1}
        assert {name.split("/")[1].partition("=")[0] for name in files(exported) if name.startswith("kernel_")} == {
            "run"
        }

    def test_kernels_are_sorted_by_device_stream_and_start(self, exported: Path) -> None:
        with duckdb.connect() as connection:
            for path in (exported / "kernel_event").rglob("*.parquet"):
                found = connection.execute(f"SELECT device_id, stream_id, start_ns FROM '{path}'").fetchall()
                assert found == sorted(found)

    def test_the_number_of_a_capture_needs_no_coordinator(self) -> None:
        first = lake_manifest.capture_number("ab" * 32, 0)
        assert first == int(hashlib.sha256(("ab" * 32 + "/0").encode()).hexdigest()[:16], 16) >> 1
        assert 0 < first < 2**63 != lake_manifest.capture_number("ab" * 32, 1)


class TestRunNames:
    @pytest.mark.parametrize(
        "value", ["../../etc", "a/b", "a\\b", "=", ",", "%41", "\0", "ü" * 300, ".", "_hidden", "con", "x y", "\udcff"]
    )
    def test_any_label_makes_one_folder(self, value: str) -> None:
        name = lake_manifest.run_name({"run": value})
        assert len(f"run={name}".encode()) < 255
        assert set(name) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.,%~-")

    def test_labels_that_look_alike_are_different_runs(self) -> None:
        labels = [{"a": "b,c-d"}, {"a": "b", "c": "d"}, {"a": "B,c-d"}, {"a-b": "c-d"}, {"a": "x" * 200 + "1"}]
        assert len({lake_manifest.run_name(item).lower() for item in [*labels, {"a": "x" * 200 + "2"}]}) == 6

    def test_the_ranks_of_a_run_are_together(self) -> None:
        assert lake_manifest.run_name({"model": "m", "tp": "0"}) == lake_manifest.run_name({"model": "m", "tp": "1"})
        assert lake_manifest.run_name({"rank": "1"}) == lake_manifest.run_name({}) == "unlabelled"

    def test_a_hostile_label_stays_in_the_lake(self, tmp_path: Path) -> None:
        trace(tmp_path / "t.json")
        lake = tmp_path / "in" / "lake"
        done = run("ingest", tmp_path / "t.json", "--lake", lake, "--label", "run=../../../out/*[x]?'")
        assert done.exit_code == 0, done.stderr
        assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "t.json"]
        assert len(run("--lake", lake, "report", "top-kernels", "--format", "csv").stdout.splitlines()) > 1


def test_loading_again_changes_nothing(tmp_path: Path) -> None:
    trace(tmp_path / "t.json")
    lake = tmp_path / "lake"
    assert run("ingest", tmp_path / "t.json", "--lake", lake).exit_code == 0
    before = {path: path.stat().st_mtime_ns for path in lake.rglob("*")}
    done = run("ingest", tmp_path / "t.json", "--lake", lake, "--label", "run=2")
    assert done.exit_code == 0 and "0 captures loaded, 1 known before" in done.stderr and "without run=2" in done.stderr
    assert {path: path.stat().st_mtime_ns for path in lake.rglob("*")} == before


def test_a_database_keeps_its_labels_and_says_so(tmp_path: Path) -> None:
    trace(tmp_path / "t.json")
    db, lake = tmp_path / "run.duckdb", tmp_path / "lake"
    assert run("ingest", tmp_path / "t.json", "--db", db, "--label", "run=1").exit_code == 0
    done = run("ingest", db, "--lake", lake, "--label", "run=2")
    assert done.exit_code == 0 and "without run=2" in done.stderr
    with tracedb.connect(lake) as connection:
        assert connection.execute("SELECT labels FROM capture").fetchall() == [({"run": "1"},)]


KILLED = """
import os, signal, sys
from tracedb.storage import lake_store
calls = 0
for name in ("put", "write"):
    def replaced(self, *given, original=getattr(lake_store.Store, name)):
        global calls
        calls += 1
        if calls == int(sys.argv[1]):
            os.kill(os.getpid(), signal.SIGKILL)
        original(self, *given)
    setattr(lake_store.Store, name, replaced)
from tracedb.cli.main import cli
cli(sys.argv[2:])
"""


@pytest.fixture(scope="module")
def of_two_ranks(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Path], Path]:
    """Two traces and the lake that an undisturbed ingest makes of them."""
    folder = tmp_path_factory.mktemp("two_ranks")
    traces = [trace(folder / f"t{rank}.json", 3 + rank, rank) for rank in (0, 1)]
    assert run("ingest", *traces, "--lake", folder / "whole", "--jobs", "1").exit_code == 0
    return traces, folder / "whole"


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
@pytest.mark.parametrize("at", [1, 2, 5, 9, 12])
def test_a_killed_ingest_leaves_a_lake_that_can_be_read_and_completed(
    tmp_path: Path, of_two_ranks: tuple[list[Path], Path], at: int
) -> None:
    (traces, whole), lake = of_two_ranks, tmp_path / "lake"
    command: list[str | Path] = ["ingest", *traces, "--lake", lake, "--jobs", "1"]
    killed = subprocess.run([sys.executable, "-c", KILLED, str(at), *map(str, command)], capture_output=True)
    assert killed.returncode == -signal.SIGKILL
    if (lake / "lake.json").exists():
        counted = run("--lake", lake, "sql", "SELECT count(*) AS n FROM capture", "--format", "json")
        assert json.loads(counted.stdout)["rows"][0]["n"] <= 2
    assert run(*command).exit_code == 0
    assert files(lake) == files(whole)


def test_two_processes_at_once_write_every_capture_once(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    command = [sys.executable, "-m", "tracedb", "-q", "ingest", str(ONE_RUN), "--lake", str(lake), "--jobs", "1"]
    running = [subprocess.Popen(command, stdout=subprocess.DEVNULL, env=dict(os.environ)) for _ in range(2)]
    assert [process.wait() for process in running] == [0, 0]
    with tracedb.connect(lake) as connection:
        ((captures, different),) = connection.execute("SELECT count(*), count(DISTINCT sha256) FROM capture").fetchall()
        ((events, unique),) = connection.execute(
            "SELECT count(*), count(DISTINCT (capture_id, event_id)) FROM kernel_event"
        ).fetchall()
        ((direct,),) = connection.execute(f"SELECT count(*) FROM '{lake}/kernel_event/*/*.parquet'").fetchall()
    assert captures == different == 8 and events == unique == direct


def test_facts_about_several_captures_are_a_step_of_their_own(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    for path in sorted(ONE_RUN.rglob("*.json.gz"))[:4]:
        assert run("ingest", path, "--lake", lake).exit_code == 0
    with tracedb.connect(lake) as connection:
        assert connection.execute("SELECT count(*) FROM clock_alignment").fetchall() == [(0,)]
    assert run("lake", "align", lake).exit_code == 0
    with tracedb.connect(lake) as connection:
        assert connection.execute("SELECT count(*) FROM clock_alignment").fetchall() == [(4,)]
    assert "0 runs aligned" in run("lake", "align", lake).stderr


class TestFaults:
    def test_no_lake(self, tmp_path: Path) -> None:
        done = run("--lake", tmp_path, "report", "top-kernels")
        assert done.exit_code == 1 and "not a lake" in done.stderr and done.stderr.count("\n") == 1

    def test_a_folder_with_other_things(self, tmp_path: Path) -> None:
        trace(tmp_path / "t.json")
        done = run("ingest", tmp_path / "t.json", "--lake", tmp_path)
        assert done.exit_code == 1 and "neither a lake nor an empty folder" in done.stderr

    def test_commands_that_write_into_a_database(self, exported: Path) -> None:
        done = run("--lake", exported, "label", "1", "a=b")
        assert done.exit_code == 2 and "writes into a database file" in done.stderr

    def test_both(self, exported: Path, sample: Path) -> None:
        assert run("report", "top-kernels", "--lake", exported, "--db", sample).exit_code == 2

    def test_no_other_file_is_read(self, exported: Path) -> None:
        done = run("--lake", exported, "sql", "FROM read_csv('/etc/passwd')")
        assert done.exit_code == 1 and "disabled" in done.stderr


def test_a_lake_stores_no_scenario(exported: Path) -> None:
    """It is refused before anything is worked out or printed."""
    done = run("--lake", exported, "whatif", "--store")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "is a lake" in done.stderr


@pytest.mark.parametrize(
    ("command", "is_listed"), [("label", False), ("remove", False), ("sample", False), ("ingest", True), ("why", True)]
)
def test_help_lists_the_option_where_it_is_taken(command: str, is_listed: bool) -> None:
    assert ("--lake DIR" in run(command, "--help").stdout) is is_listed


def test_the_labels_of_an_ingest_are_shown_in_a_narrow_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of 19 digits goes first."""
    monkeypatch.setenv("COLUMNS", "100")
    path = trace(tmp_path / f"{'long' * 12}.json")
    labels = [word for key in ("channels=8", "threads=256") for word in ("--label", key)]
    done = run("ingest", path, "--lake", tmp_path / "lake", *labels)
    assert done.exit_code == 0, done.stderr
    heading = "".join(done.stdout.splitlines()[:2])
    assert "channels/" in heading and "capture" not in heading and "8/256" in done.stdout
