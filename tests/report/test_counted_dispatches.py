"""Dispatches with hardware counters: reports exclude them, say so, and include them on request."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.command import calls, run
from support.loading import ingest
from support.rocprof_files import Set, kernel
from support.tiny import ADD, GEMM, Tiny

SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "rocprof"


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plain run, and one in which the same two kernels were counted."""
    folder = tmp_path_factory.mktemp("counted")
    for name, is_counted in (("plain", False), ("counted", True)):
        made = Set(folder / name)
        made.kernels = [kernel("Cijk_k", 1_000, 1_500, Dispatch_Id=1), kernel("axpy", 2_000, 2_700, Dispatch_Id=2)]
        if is_counted:
            for dispatch, start, end, text in ((1, 1_000, 1_500, "Cijk_k"), (2, 2_000, 2_700, "axpy")):
                for counter in ("SQ_WAVES", "SQ_INSTS_MFMA"):
                    made.counter(dispatch, counter, 8.0, start, end, text)
        made.save()
    db = folder / "run.duckdb"
    assert ingest(folder, db=db).exit_code == 0
    return db


@pytest.fixture(scope="module")
def only(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nothing but counters."""
    folder = tmp_path_factory.mktemp("only")
    made = Set(folder / "set")
    made.counter(1, "SQ_WAVES", 8.0, 1_000, 1_500)
    made.save()
    db = folder / "run.duckdb"
    assert ingest(folder, db=db).exit_code == 0
    return db


def test_they_are_left_out_and_taken_in(counted: Path) -> None:
    done = run("report", "top-kernels", "--db", counted, "--format", "csv")
    assert (
        "2 dispatches measured while hardware counters were read are left out; --counted takes them in" in done.stderr
    )
    assert calls(counted) == {"Cijk_k": 1, "axpy": 1}
    assert calls(counted, "--counted") == {"Cijk_k": 2, "axpy": 2}
    done = run("report", "top-kernels", "--counted", "--db", counted, "--format", "csv")
    assert "are taken in: their durations are not those of a plain run" in done.stderr


def test_the_sql_says_which(counted: Path) -> None:
    plain = run("report", "gpu-timeline", "--rank", "0", "--db", counted, "--show-sql")
    assert plain.exit_code == 3
    shown = run("report", "gpu-timeline", "--counted", "--db", counted, "--show-sql").stdout
    assert "v1._timed_event AS e" in shown and "_gpu_event" not in shown


def test_a_report_that_has_no_use_for_it(counted: Path) -> None:
    done = run("report", "kernel-counters", "--counted", "--db", counted)
    assert (done.exit_code, "does not support --counted" in done.stderr) == (2, True)


def test_nothing_but_counters(only: Path) -> None:
    done = run("report", "top-kernels", "--db", only)
    assert done.exit_code == 3
    assert "nothing but dispatches measured while hardware counters were read (1)" in done.stderr
    assert calls(only, "--counted") == {"k": 1}
    done = run("-q", "report", "counter-summary", "--db", only)
    assert done.exit_code == 0 and "SQ_WAVES=8.0" in done.stdout


def test_a_class_of_them(tmp_path: Path) -> None:
    """Classes are looked for among counted dispatches too, and left-out work is not idle time: 50 ns are, of 350."""
    tiny = Tiny(tmp_path / "run.duckdb")
    tiny.capture(0)
    for name, start, duration in ((GEMM, 0, 100), (ADD, 100, 300), (GEMM, 450, 100)):
        event = tiny.kernel(name, start, duration, is_counted=True)
        tiny.add("counter", capture_id=1, event_id=event, name="SQ_WAVES", value=8.0)
    db = tiny.save()
    flags = ("--class", "matmul", "--db", db, "--format", "json")
    (times,) = json.loads(run("-q", "report", "gpu-timeline", "--counted", *flags).stdout)["rows"]
    assert (times["busy_ns"], times["idle_ns"], times["total_ns"]) == (200, 50, 250)
    windows = json.loads(run("-q", "report", "gpu-utilization", "--counted", "--top", "0", *flags).stdout)["rows"]
    assert [sum(row[part] for row in windows) for part in ("busy_ns", "other_ns", "idle_ns")] == [200, 300, 50]
    assert len(json.loads(run("-q", "report", "kernel-counters", *flags).stdout)["rows"]) == 2
    done = run("report", "top-kernels", *flags)
    assert done.exit_code == 3 and "nothing but dispatches measured while" in done.stderr


def test_no_counters(sample: Path) -> None:
    done = run("report", "kernel-counters", "--db", sample)
    assert (done.exit_code, "no hardware counters were captured" in done.stderr) == (3, True)


@pytest.mark.shared
@pytest.mark.skipif(not SHARED.exists(), reason="the real traces are not beside the repository")
def test_durations_of_a_recorded_pair(tmp_path: Path) -> None:
    """Counters repeat a dispatch's times in each row; its time counts once, and is that of the kernel trace."""
    for name in ("kernel_trace", "counter_collection"):
        db = tmp_path / f"{name}.duckdb"
        assert ingest(SHARED / "counters_pair" / f"1323859_{name}.csv", db=db).exit_code == 0
    plain = run("-q", "report", "kernels", "--db", tmp_path / "kernel_trace.duckdb", "--format", "csv")
    both = tmp_path / "both.duckdb"
    assert ingest(SHARED / "counters_pair", db=both).exit_code == 0
    columns = "name, start_ns, duration_ns"
    query = f"SELECT {columns} FROM v1.kernels ORDER BY ALL"
    wanted = run("sql", query, "--db", tmp_path / "kernel_trace.duckdb", "--format", "csv").stdout
    query = f"SELECT {columns} FROM v1.kernel_counters ORDER BY ALL"
    assert plain.exit_code == 0 and wanted.count("\n") == 17
    for db in (tmp_path / "counter_collection.duckdb", both):
        assert run("sql", query, "--db", db, "--format", "csv").stdout == wanted
    query = "SELECT calls, total_ns FROM v1.counter_summary"
    once = "SELECT calls, total_ns FROM v1.top_kernels"
    assert (
        run("sql", query, "--db", both, "--format", "csv").stdout
        == run("sql", once, "--db", tmp_path / "kernel_trace.duckdb", "--format", "csv").stdout
    )
