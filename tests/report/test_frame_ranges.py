"""``--range`` with a pattern that matches Python frames and nn.Modules instead of ranges."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.command import run
from support.tiny import ADD, GEMM, Tiny

MODULE = "nn.Module: Linear_0"


def frame(tiny: Tiny, number: int, name: str, start: int, end: int, parent: int | None = None) -> None:
    tiny.add(
        "frame",
        capture_id=tiny.captures, frame_id=number, kind="module" if name == MODULE else "function", name=name,
        process_id=1, thread_id=1, start_ns=start, duration_ns=end - start, parent_id=parent,
    )  # fmt: skip


def launched(tiny: Tiny, name: str, start: int, duration: int, thread: int = 1) -> int:
    number = tiny.kernel(name, start + 1_000, duration, launch_id=tiny.events + 1)
    tiny.add(
        "launch",
        capture_id=tiny.captures, launch_id=number, name="cudaLaunchKernel", process_id=1, thread_id=thread,
        start_ns=start, duration_ns=2,
    )  # fmt: skip
    return number


@pytest.fixture(scope="module")
def stacks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two steps. In each a module launches a GEMM of 100 ns, its caller an ADD of 10 ns, autograd a GEMM of 300 ns."""
    tiny = Tiny(tmp_path_factory.mktemp("stacks") / "trace.duckdb")
    tiny.capture(0)
    for step in (0, 1):
        at = 10_000 * step
        frame(tiny, 10 * step + 1, "train.py(3): step", at + 10, at + 900)
        frame(tiny, 10 * step + 2, MODULE, at + 20, at + 200, parent=10 * step + 1)
        frame(tiny, 10 * step + 3, "<built-in function linear>", at + 30, at + 100, parent=10 * step + 2)
        events = (
            launched(tiny, GEMM, at + 150, 100 + step),
            launched(tiny, ADD, at + 300, 10),
            launched(tiny, GEMM, at + 400, 300, thread=2),
        )
        tiny.range(step + 1, f"ProfilerStep#{step}", at, at + 5_000, events)
    return tiny.save()


def rows(db: Path, *arguments: str) -> list[dict[str, Any]]:
    done = run("report", *arguments, "--db", db, "--format", "json")
    assert done.exit_code == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert "--range matches Python frames" in found["warnings"][-1]
    listed: list[dict[str, Any]] = found["rows"]
    return listed


def picked(found: list[dict[str, Any]], *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in columns) for row in found]


def test_kernels_of_a_module(stacks: Path) -> None:
    found = rows(stacks, "range-kernels", "--range", "nn.Module*")
    columns = ("rule", "range", "style", "kernel", "instances", "calls", "total_ns", "share_percent")
    assert picked(found, *columns) == [("process", MODULE, "module", GEMM, 2, 2, 201, 100.0)]


def test_a_function_holds_what_other_threads_launch_meanwhile_unless_the_rule_is_thread(stacks: Path) -> None:
    of_step = ("range-kernels", "--range", "train.py*")
    assert picked(rows(stacks, *of_step), "kernel", "calls", "total_ns") == [(GEMM, 4, 801), (ADD, 2, 20)]
    own = rows(stacks, *of_step, "--rule", "thread")
    assert picked(own, "kernel", "calls", "total_ns") == [(GEMM, 2, 201), (ADD, 2, 20)]


def test_times_and_steps(stacks: Path) -> None:
    columns = ("name", "instances", "range_avg_ns", "projected_avg_ns", "kernel_avg_ns", "warmup_instances")
    assert picked(rows(stacks, "range-time", "--range", "nn.Module*"), *columns) == [(MODULE, 2, 180, 100.5, 100.5, 0)]
    by_step = rows(stacks, "range-time", "--range", "nn.Module*", "--by", "step")
    assert picked(by_step, "step", "kernel_avg_ns") == [(0, 100.0), (1, 101.0)]
    later = rows(stacks, "range-kernels", "--range", "nn.Module*", "--skip-warmup", "1")
    assert picked(later, "instances", "total_ns") == [(1, 101)]


def test_any_report_over_gpu_events_takes_the_filter(stacks: Path) -> None:
    assert picked(rows(stacks, "top-kernels", "--range", "nn.Module*"), "name", "total_ns") == [(GEMM, 201)]
    by_range = rows(stacks, "top-kernels", "--range", "nn.Module*", "--by", "range")
    assert picked(by_range, "range", "total_ns") == [(MODULE, 201)]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (
            ("nvtx-ranges", "--range", "nn.Module*"),
            3,
            "report nvtx-ranges is about ranges; range-kernels and range-time",
        ),
        (("range-time", "--range", "nn.Module*", "--rule", "time"), 3, "--rule time is for ranges"),
        (("range-time", "--range", "nn.Module*", "--range", "ProfilerStep*"), 2, "ask for one kind"),
        (("range-time", "--range", "nothing"), 3, "no range matches 'nothing'"),
    ],
)
def test_what_cannot_be_answered(stacks: Path, arguments: tuple[str, ...], code: int, said: str) -> None:
    done = run("report", *arguments, "--db", stacks)
    assert done.exit_code == code
    assert said in done.stderr
