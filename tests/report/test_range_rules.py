"""Which rule assigns GPU work to a range, and the warning if another rule would give a different answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.command import run
from support.tiny import ADD, GEMM, Tiny

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
BY_PROCESS = (
    "ranges hold a kernel by rule process: GPU work that other threads launched meanwhile is taken in "
    "(train: 75.0 % of 0.000 ms); --rule thread leaves it out"
)
BY_THREAD = (
    "ranges hold a kernel by rule thread: GPU work that other threads launched meanwhile is left out "
    "(train: 75.0 % of 0.000 ms); --rule process takes it in"
)


def answer(db: Path, *arguments: str) -> dict[str, Any]:
    done = run("report", *arguments, "--db", db, "--format", "json")
    assert done.exit_code == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def launched(tiny: Tiny, number: int, thread: int, start: int) -> None:
    tiny.add(
        "launch",
        capture_id=tiny.captures, launch_id=number, name="cudaLaunchKernel", process_id=1, thread_id=thread,
        start_ns=start, duration_ns=2,
    )  # fmt: skip


@pytest.fixture(scope="module")
def autograd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A step of 100 ns in an ADD of its own thread, then 300 ns in a GEMM that thread 2 launches while it is open."""
    tiny = Tiny(tmp_path_factory.mktemp("autograd") / "trace.duckdb")
    tiny.capture(0)
    launched(tiny, 1, 1, 10)
    launched(tiny, 2, 2, 20)
    own = tiny.kernel(ADD, 20, 100, launch_id=1)
    other = tiny.kernel(GEMM, 120, 300, launch_id=2)
    tiny.range(1, "train", 0, 60, (own,))
    tiny.add("annotation_kernel", capture_id=1, annotation_id=1, event_id=other, rule="process")
    return tiny.save()


@pytest.mark.parametrize("report", ["matmul-fraction", "top-kernels", "range-time", "range-kernels", "kernels"])
def test_a_range_takes_in_what_other_threads_launched_meanwhile(autograd: Path, report: str) -> None:
    found = answer(autograd, report, "--range", "train")
    assert found["filters"]["rule"] == "process"
    assert found["warnings"] == [BY_PROCESS]
    assert answer(autograd, report, "--range", "train", "--rule", "thread")["warnings"] == [BY_THREAD]


def test_numbers_by_either_rule(autograd: Path) -> None:
    def shares(*options: str) -> dict[str, float]:
        found = answer(autograd, "matmul-fraction", *options)["rows"]
        return {row["class"]: row["share_percent"] for row in found}

    assert shares("--range", "train") == shares("--by", "range") == {"matmul": 75.0, "elementwise": 25.0}
    assert shares("--range", "train", "--rule", "thread") == {"matmul": 0.0, "elementwise": 100.0}
    assert [row["kernel_avg_ns"] for row in answer(autograd, "range-time")["rows"]] == [400.0]
    assert [row["calls"] for row in answer(autograd, "range-kernels")["rows"]] == [1, 1]


@pytest.mark.parametrize("report", ["nvtx-ranges", "nvtx-kernels", "nvtx-kern-sum", "nvtx-gpu-proj-sum"])
def test_the_reports_of_nsys_keep_its_rule(autograd: Path, report: str) -> None:
    assert answer(autograd, report)["warnings"] == [BY_THREAD]
    assert answer(autograd, report, "--rule", "process")["warnings"] == [BY_PROCESS]


def test_nothing_is_said_where_the_rules_agree(autograd: Path, tmp_path: Path) -> None:
    assert answer(autograd, "top-kernels")["warnings"] == []
    tiny = Tiny(tmp_path / "trace.duckdb")
    tiny.capture(0)
    launched(tiny, 1, 1, 10)
    tiny.range(1, "train", 0, 60, (tiny.kernel(ADD, 20, 100, launch_id=1),))
    db = tiny.save()
    for rule in ((), ("--rule", "thread"), ("--rule", "process")):
        assert answer(db, "range-time", *rule)["warnings"] == []


def test_threads_that_work_side_by_side_keep_their_own(tmp_path: Path) -> None:
    """Two threads serve at a time, each inside a range ``serve`` of its own: no kernel counts twice."""
    tiny = Tiny(tmp_path / "trace.duckdb")
    tiny.capture(0)
    kernels = []
    for thread in (1, 2):
        launched(tiny, thread, thread, 10)
        kernels.append(tiny.kernel(GEMM, 20 + thread, 100, launch_id=thread, stream_id=thread))
    tiny.range(1, "serve", 0, 60, (kernels[0],))
    tiny.range(2, "serve", 0, 60, (kernels[1],))
    tiny.connection.execute("UPDATE main.annotation SET thread_id = annotation_id")
    for annotation, event in ((1, kernels[1]), (2, kernels[0])):
        tiny.add("annotation_kernel", capture_id=1, annotation_id=annotation, event_id=event, rule="process")
    db = tiny.save()
    found = answer(db, "range-kernels")
    assert found["filters"]["rule"] == "thread"
    assert [(row["instances"], row["calls"], row["total_ns"]) for row in found["rows"]] == [(2, 2, 200)]
    assert "is left out (serve: 50.0 % of 0.000 ms); --rule process takes it in" in found["warnings"][0]
    (said,) = answer(db, "range-kernels", "--rule", "process")["warnings"]
    assert "also of threads that have ranges of that name themselves" in said


def test_events_without_a_launch_are_counted(tmp_path: Path) -> None:
    tiny = Tiny(tmp_path / "trace.duckdb")
    tiny.capture(0)
    launched(tiny, 1, 1, 10)
    tiny.range(1, "train", 0, 60, (tiny.kernel(ADD, 20, 100, launch_id=1),))
    tiny.kernel(GEMM, 30, 300)
    db = tiny.save()
    said = "GPU events whose launch was not recorded are in no range: 1 (75.0 % of the GPU time)"
    assert answer(db, "matmul-fraction", "--range", "train")["warnings"] == [said]
    assert answer(db, "matmul-fraction")["warnings"] == []


def test_ranges_of_the_cpu_alone_have_their_times(tmp_path: Path) -> None:
    tiny = Tiny(tmp_path / "trace.duckdb")
    tiny.capture(0)
    launched(tiny, 1, 1, 10)
    tiny.range(1, "train", 0, 60, (tiny.kernel(ADD, 20, 100, launch_id=1),))
    tiny.capture(1, status="no_gpu_activity")
    tiny.range(1, "train", 0, 40)
    rows = answer(tiny.save(), "range-time", "--by", "rank")["rows"]
    assert [(row["rank"], row["range_avg_ns"], row["kernel_avg_ns"]) for row in rows] == [(0, 60, 100), (1, 40, None)]


def test_training_step_of_a_recording(tmp_path: Path) -> None:
    """nsys recorded a training step whose backward pass autograd's thread launched."""
    recorded = DATA / "nsys" / "single_train.sqlite"
    if not recorded.exists():
        pytest.skip("the shared recordings are not here")
    db = tmp_path / "trace.duckdb"
    assert run("ingest", recorded, "--db", db).exit_code == 0
    found = answer(db, "matmul-fraction", "--range", "train_step")
    assert round(found["rows"][0]["share_percent"], 1) == 75.4
    told = "(train_step: 59.0 % of 244.670 ms); --rule thread leaves it out"
    assert any(told in warning for warning in found["warnings"])
