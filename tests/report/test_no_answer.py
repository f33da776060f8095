"""The data that a report needs is one of a fixed set, and each need has a reason to give if there is no answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.command import run
from support.tiny import GEMM, Tiny
from tracedb.errors import UsageError
from tracedb.report import no_answer, registry
from tracedb.report.needs import Needs

CONTENT = {"title": "Anything.", "order": [], "names": [], "columns": [{"of": "name"}]}


def test_a_sidecar_names_a_need_that_there_is() -> None:
    assert registry.declared("kernels", {**CONTENT, "needs": "copies"}).needs is Needs.COPIES
    with pytest.raises(ValueError, match="'kernel' is not a valid Needs"):
        registry.declared("kernels", {**CONTENT, "needs": "kernel"})


def test_every_need_is_used_by_a_report() -> None:
    assert {report.needs for report in registry.every()} == set(Needs)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("kernel_stats", "top-kernels"),
        ("hip-stats", "cuda-api-sum"),
        ("memory_copy_stats", "cuda-gpu-mem-time-sum"),
        ("copies", "cuda-gpu-mem-time-sum"),
        ("GEMM", "gemm-variance"),
        ("gpukernsum", "top-kernels or cuda-gpu-kern-sum"),
        ("latency", "launch-latency"),
        ("gemm_varience", "gemm-variance"),
    ],
)
def test_names_of_other_tools_and_parts_of_names_are_understood(name: str, meant: str) -> None:
    with pytest.raises(UsageError, match=f"there is no report '{name}'; did you mean {meant}\\? "):
        registry.find(name)


def test_a_name_of_another_tool_is_not_that_of_a_report() -> None:
    ours = {name for report in registry.every() for name in (report.view, *report.also)}
    theirs = [name for report in registry.every() for names in report.peers.values() for name in names]
    assert ours.isdisjoint(name.lower() for name in theirs) and not any("-" in name for name in theirs)


@pytest.mark.parametrize("need", [need for need in Needs if need not in (Needs.GPU, Needs.KERNELS)])
def test_every_need_has_a_cause_of_its_own(need: Needs) -> None:
    """All that is special is explained by a function for it; GPU activity and kernels are looked for in all reports."""
    few = [cause for needs, cause in no_answer.CAUSES if need in needs and len(needs) <= 3]
    assert few


@pytest.mark.parametrize(
    ("report", "reason"),
    [
        ("module-time", "no nn.Module was captured among 1 Python frame"),
        ("kernel-source", "no GPU work was launched inside"),
    ],
)
def test_frames_without_modules_or_work(report: str, reason: str, tmp_path: Path) -> None:
    """What is missing differs: the one needs modules, the other only work in a frame."""
    tiny = Tiny(tmp_path / "trace.duckdb")
    capture = tiny.capture(0)
    tiny.add("frame", capture_id=capture, frame_id=1, kind="function", name="f.py(1): f", process_id=1, thread_id=1,
             start_ns=0, duration_ns=5)  # fmt: skip
    tiny.kernel(GEMM, 20, 30)
    done = run("report", report, "--db", tiny.save())
    assert (done.exit_code, reason in done.stderr) == (3, True), done.stderr


def test_copies_whose_sizes_were_not_recorded(tmp_path: Path) -> None:
    tiny = Tiny(tmp_path / "trace.duckdb")
    tiny.capture(0, source="rocprofv3")
    tiny.kernel("MEMORY_COPY_HOST_TO_DEVICE", 20, 30, kind="memcpy")
    db = tiny.save()
    done = run("report", "cuda-gpu-mem-size-sum", "--db", db)
    assert (done.exit_code, "sizes of the copies were not recorded" in done.stderr) == (3, True), done.stderr
    assert run("report", "cuda-gpu-mem-time-sum", "--db", db).exit_code == 0


@pytest.mark.parametrize("report", ["critical-path", "why"])
def test_no_time_to_divide(report: str, tmp_path: Path) -> None:
    tiny = Tiny(tmp_path / "trace.duckdb")
    tiny.capture(0)
    tiny.kernel(GEMM, 20, 0)
    done = run("report", report, "--db", tiny.save())
    assert done.exit_code == 3
    assert "no time to divide: 1 GPU event of duration 0" in done.stderr, done.stderr
