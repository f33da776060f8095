"""What a row pools is reported, with the option that separates it; and which report is suggested first."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from support.command import run
from support.tiny import ADD, GEMM, Tiny
from tracedb.report import next_commands


def answer(db: Path, *arguments: str) -> dict[str, Any]:
    done = run("report", *arguments, "--db", db, "--format", "json")
    assert done.exit_code == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two configurations of two ranks; one GPU each, busy for 100 ns more in each capture."""
    tiny = Tiny(tmp_path_factory.mktemp("ranks") / "trace.duckdb")
    for channels in ("4", "8"):
        for rank in (0, 1):
            tiny.capture(rank, {"channels": channels})
            tiny.kernel(GEMM, 0, 100 * tiny.captures)
    return tiny.save()


def test_ranks_summed_by_a_label_are_said_and_counted(ranks: Path) -> None:
    found = answer(ranks, "gpu-timeline", "--by", "channels")
    assert [(row["channels"], row["gpus"], row["total_ns"]) for row in found["rows"]] == [("4", 2, 300), ("8", 2, 700)]
    assert found["warnings"] == [
        "each row pools up to 2 ranks of a configuration; --by rank keeps them apart, "
        "gpu-timeline-average has their mean"
    ]
    apart = answer(ranks, "gpu-timeline", "--by", "channels", "--by", "rank")
    assert [row["gpus"] for row in apart["rows"]] == [1] * 4
    assert apart["warnings"] == answer(ranks, "gpu-timeline")["warnings"] == []
    assert answer(ranks, "gpu-timeline-average", "--by", "channels")["warnings"] == []


def test_ranks_are_said_beside_configurations(ranks: Path) -> None:
    said = answer(ranks, "matmul-fraction")["warnings"]
    assert said == [
        "2 configurations pooled, differing in channels; --by channels keeps them apart",
        "each row pools up to 2 ranks of a configuration; --by rank keeps them apart",
    ]
    assert answer(ranks, "matmul-fraction", "--rank", "1", "--by", "channels")["warnings"] == []


def test_gpus_of_a_capture(tmp_path: Path) -> None:
    tiny = Tiny(tmp_path / "trace.duckdb")
    tiny.capture()
    tiny.add("device", capture_id=1, device_id=1, vendor="NVIDIA")
    for device in (0, 1):
        tiny.kernel(ADD, 0, 100, device_id=device)
    db = tiny.save()
    said = ["each row pools up to 2 GPUs of a capture; --by device keeps them apart"]
    assert answer(db, "top-kernels")["warnings"] == said
    assert answer(db, "top-kernels", "--by", "device")["warnings"] == answer(db, "gpu-timeline")["warnings"] == []


def test_processes_of_a_file_without_ranks(tmp_path: Path) -> None:
    for name, numbers in (("own", (0, 1)), ("shared", (0, 0))):
        tiny = Tiny(tmp_path / f"{name}.duckdb")
        for device in numbers:
            tiny.capture(path="/x/all.sqlite")
            tiny.kernel(ADD, 0, 100, device_id=device)
        db = tiny.save()
        hint = "--by device keeps them apart" if name == "own" else "--capture chooses one process"
        said = f"each row pools up to 2 processes of a file whose ranks are not known; {hint}"
        assert answer(db, "top-kernels")["warnings"] == [said]
        assert answer(db, "gpu-timeline")["warnings"] == []
        assert answer(db, "gpu-timeline", "--by", "device")["warnings"] == ([] if name == "own" else [
            "each row pools up to 2 processes of a file whose ranks are not known; --capture chooses one process, "
            "gpu-timeline-average has their mean"
        ])  # fmt: skip


def test_a_device_number_that_stands_for_several_gpus(tmp_path: Path) -> None:
    tiny = Tiny(tmp_path / "trace.duckdb")
    for number in (1, 2):
        tiny.capture(path=f"/x/{number}.sqlite", labels={"run": str(number)})
        tiny.kernel(ADD, 0, 100)
    tiny.connection.execute("UPDATE main.device SET uuid = 'GPU-' || capture_id")
    db = tiny.save()
    said = answer(db, "top-kernels", "--by", "device")["warnings"]
    assert said == [
        "2 configurations pooled, differing in run; --by run keeps them apart",
        "device 0 is 2 different GPUs in different captures, pooled here; --by rank keeps ranks apart, "
        "--capture chooses captures",
    ]
    assert answer(db, "top-kernels", "--by", "device", "--by", "run")["warnings"] == []


def test_groups_of_different_numbers_of_steps(tmp_path: Path) -> None:
    tiny = Tiny(tmp_path / "trace.duckdb")
    for number in (1, 2):
        tiny.capture(0, labels={"run": str(number)})
        for step in range(number):
            tiny.range(step, f"ProfilerStep#{step}", 100 * step, 100 * step + 90, (tiny.kernel(ADD, 100 * step, 50),))
    db = tiny.save()
    said = ["captures hold 1 to 2 steps, and sums are over all of their steps; --by step separates them"]
    assert answer(db, "top-kernels", "--by", "run")["warnings"] == said
    assert answer(db, "top-kernels", "--by", "run", "--by", "step")["warnings"] == []


@pytest.mark.parametrize(
    ("table", "report"),
    [("kernel", "top-kernels"), ("graph", "gpu-timeline"), ("memcpy", "cuda-gpu-mem-time-sum"), ("range", "range-time"),
     ("op", None), (None, None)],
)  # fmt: skip
def test_what_to_ask_first_can_be_answered(tmp_path: Path, table: str | None, report: str | None) -> None:
    tiny = Tiny(tmp_path / "a b.duckdb")
    tiny.capture(0, status="complete" if report in ("top-kernels", "gpu-timeline") else "no_gpu_activity")
    if table in ("kernel", "graph", "memcpy"):
        tiny.kernel(GEMM, 0, 100, kind=table)
    if table == "range":
        tiny.range(1, "load", 0, 100)
    if table in ("range", "op"):
        tiny.add("op", capture_id=1, op_id=1, name="aten::mm", start_ns=0, duration_ns=5)
    command = next_commands.first(tiny.save())
    assert (command is None) == (table is None)
    if command is not None:
        words = shlex.split(command)
        assert words[0] == "tracedb" and (report is None or words[2] == report)
        assert run(*words[1:]).exit_code == 0


def test_no_hint_of_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    assert next_commands.first(tmp_path / "none.duckdb") is None


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run a in two captures by two profilers, of two sizes; b with graph replays, without range and counters."""
    tiny = Tiny(tmp_path_factory.mktemp("runs") / "trace.duckdb")
    for labels, source in (
        ({"run": "a", "size": "1"}, "torch"),
        ({"run": "a", "size": "2"}, "torch"),
        ({"run": "b"}, "nsys"),
    ):
        capture = tiny.capture(None, labels, source=source)
        event = tiny.kernel(GEMM, 0, 100)
        if source == "torch":
            tiny.range(1, "forward", 0, 200, (event,))
            tiny.add("counter", capture_id=capture, event_id=event, name="SQ_WAVES", value=8.0)
    tiny.kernel("graph", 200, 100, kind="graph")
    return tiny.save()


def test_what_by_keeps_apart_is_not_pooled(runs: Path) -> None:
    """Configurations and profilers are counted within a row."""
    said = answer(runs, "matmul-fraction", "--by", "run")["warnings"]
    assert [text for text in said if "pooled" in text] == [
        "up to 2 configurations pooled in a row, differing in size; --by size keeps them apart"
    ]
    said = answer(runs, "matmul-fraction", "--by", "run", "--by", "size")["warnings"]
    assert not [text for text in said if "pooled" in text]
    said = answer(runs, "matmul-fraction")["warnings"]
    assert [text.partition(" pooled")[0] for text in said if "pooled" in text] == [
        "captures of one rank by several profilers are",
        "3 configurations",
    ]


def test_shares_of_chosen_classes(runs: Path) -> None:
    said = answer(runs, "matmul-fraction", "--by", "run", "--by", "size", "--class", "matmul")["warnings"]
    assert "shares are of class matmul alone; without --class they are of all kernels" in said
    said = answer(runs, "top-kernels", "--by", "run", "--class", "!graph")["warnings"]
    assert "shares are of the chosen classes alone; without --class they are of all kernels" in said
    assert not [text for text in answer(runs, "gemm-variance", "--class", "matmul")["warnings"] if "shares" in text]


@pytest.mark.parametrize("arguments", [("range-kernels", "--range", "forward"), ("counter-summary",)])
def test_captures_that_give_no_rows_are_not_spoken_of(runs: Path, arguments: tuple[str, ...]) -> None:
    """Here the one with graph replays, of another profiler."""
    assert answer(runs, *arguments)["warnings"] == [
        "2 configurations pooled, differing in size; --by size keeps them apart"
    ]


def test_a_list_of_ranges(tmp_path: Path) -> None:
    """Commas separate patterns, unless a range has the name with its comma."""
    tiny = Tiny(tmp_path / "trace.duckdb")
    tiny.capture()
    for number, name in enumerate(("forward", "backward", "f(a, b)")):
        event = tiny.kernel(GEMM, 1_000 * number, 100)
        tiny.range(number + 1, name, 1_000 * number, 1_000 * number + 200, (event,))
    db = tiny.save()
    for text, count in (("forward,backward", 2), ("f(a, b)", 1), ("f(a, b),forward", 0), ("for*,", 1)):
        done = run("report", "kernels", "--range", text, "--db", db, "--format", "json")
        assert done.exit_code == (0 if count else 3), done.stderr
        assert len(json.loads(done.stdout)["rows"] if count else []) == count


def test_names_of_nsys_with_arguments(tmp_path: Path) -> None:
    done = run("report", "cuda_gpu_kern_sum:base", "--db", tmp_path / "none.duckdb")
    assert done.exit_code == 2
    assert "report cuda_gpu_kern_sum takes no argument :base; it has whole names, and short_name" in done.stderr
