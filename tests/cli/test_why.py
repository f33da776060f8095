"""``tracedb why``: the reasons in words, and what the recording cannot tell."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.command import run
from support.loading import ingest
from support.tiny import Tiny
from support.traces import annotation, call, kernel, write


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two kernels of a step of 1 ms; between them, the host loads data for 500 µs."""
    folder = tmp_path_factory.mktemp("why")
    events = [
        annotation(0, 1_000, "ProfilerStep#3"),
        call(10, 5, correlation=1),
        kernel(20, 100, "slow_kernel", correlation=1),
        annotation(130, 500, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"),
        call(640, 5, correlation=2),
        kernel(650, 50, "slow_kernel", correlation=2),
    ]
    trace = write(folder / "t.json", events)
    assert ingest(trace, db=folder / "t.duckdb").exit_code == 0
    return folder / "t.duckdb"


def test_one_page_of_words(db: Path) -> None:
    done = run("why", "--db", db)
    assert done.exit_code == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "What keeps the step from the hardware's peak (1 step):"
    assert lines[2] == "1. The GPU idles while the host loads data: 50.0 % (0.500 ms per step)"
    query = next(line for line in lines if line.startswith("   Query: ")).removeprefix("   Query: ")
    assert query.startswith("SELECT * FROM v1.gpu_gaps WHERE capture_id = 1 AND after_event_id IN (")
    assert [row["idle_ns"] for row in json.loads(run("sql", query, "--db", db, "--format", "json").stdout)["rows"]] == [
        530_000
    ]
    assert "What this recording cannot tell:" in lines
    assert any(line.startswith("- operators were not recorded") for line in lines)


def test_fewer_reasons(db: Path) -> None:
    done = run("why", "--db", db, "--top", "1")
    assert [line[:3] for line in done.stdout.splitlines() if line[:1].isdigit()] == ["1. "]


def test_profilers_and_files_of_one_run(tmp_path: Path) -> None:
    """Each profiler has reasons of its own; files whose ranks are not known are taken for one run, with a warning."""
    tiny = Tiny(tmp_path / "t.duckdb")
    for source, path in (("nsys", "a.sqlite"), ("nsys", "b.sqlite"), ("rocprofv3", "c.csv")):
        tiny.capture(None, source=source, path=path)
        tiny.kernel("first", 0, 100)
        tiny.kernel("last", 400, 100)
    done = run("why", "--db", tiny.save())
    assert done.exit_code == 0, done.stderr
    heads = [line.partition(" from the")[0] for line in done.stdout.splitlines() if line.startswith("What keeps")]
    assert heads == ["What keeps the step of source nsys", "What keeps the step of source rocprofv3"]
    assert "Smaller reasons: 0.0 %. Computation at the roof, or that cannot be judged: " in done.stdout
    pooled = [line for line in done.stderr.splitlines() if "taken for one run" in line]
    assert pooled == [
        "tracedb: warning: 2 files with the same source and labels, whose ranks are not known, are taken for one run "
        "(a.sqlite, b.sqlite); --capture or --path chooses one"
    ]


def test_launches_that_were_not_recorded_are_counted(tmp_path: Path) -> None:
    """By each answer that compares calls with kernels: on the page, and as a warning."""
    tiny = Tiny(tmp_path / "t.duckdb")
    tiny.capture(None)
    tiny.add("launch", capture_id=1, launch_id=1, name="cudaLaunchKernel", thread_id=1, start_ns=0, duration_ns=5)
    tiny.kernel("first", 10, 100, launch_id=1)
    tiny.kernel("second", 400, 100)
    tiny.kernel("third", 900, 100)
    db = tiny.save()
    page = " ".join(run("why", "--db", db).stdout.split())
    assert (
        "- the launches of 2 of 3 GPU events were not recorded, so why the GPU idles before these is not known" in page
    )
    unknown = "tracedb: warning: 2 of 3 kernels have no recorded launch: why the GPU idles before them is unknown"
    left_out = "tracedb: warning: 2 of 3 kernels have no recorded launch and are left out"
    for name in ("why", "idle-breakdown", "gpu-gaps"):
        assert unknown in run("report", name, "--db", db).stderr.splitlines()
    for name in ("launch-latency", "queue-depth", "cuda-kern-exec-sum"):
        assert left_out in run("report", name, "--db", db).stderr.splitlines()
    assert "recorded launch" not in run("report", "top-kernels", "--db", db).stderr


def test_rows_for_scripts(db: Path) -> None:
    found = json.loads(run("why", "--db", db, "--format", "json").stdout)
    assert found["report"] == "why"
    assert found["rows"][0]["reason"] == "data_loading"
    assert any("not known: " in note for note in found["notes"])


def test_no_gpu_activity(tmp_path: Path) -> None:
    trace = write(tmp_path / "t.json", [call(10, 5, correlation=1)])
    ingest(trace, db=tmp_path / "t.duckdb")
    done = run("why", "--db", tmp_path / "t.duckdb")
    assert (done.exit_code, done.stdout) == (3, "")
