"""Ranges are selected by name, or by domain and name as nsys prints them; API calls by step."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support import tiny
from support.command import run
from support.tiny import ADD, GEMM, NCCL
from tracedb.storage import views


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two steps of 100 ns with calls; a GEMM in a range called ``NCCL:one``, a collective in ``all`` of domain NCCL."""
    made = tiny.Tiny(tmp_path_factory.mktemp("domains") / "trace.duckdb")
    made.capture(0, source="torch")
    made.range(1, "ProfilerStep#1", 0, 100)
    made.range(2, "ProfilerStep#2", 100, 200)
    for number, start in enumerate((10, 90, 110, 199, 205), start=1):
        made.add(
            "launch",
            capture_id=1, launch_id=number, correlation_id=number, name="cudaLaunchKernel", process_id=1, thread_id=1,
            start_ns=start, duration_ns=10,
        )  # fmt: skip
    plain = made.kernel(GEMM, 20, 5, launch_id=1, correlation_id=1)
    collective = made.kernel(NCCL, 120, 7, launch_id=3, correlation_id=3)
    other = made.kernel(ADD, 210, 9, launch_id=5, correlation_id=5)
    made.range(3, "NCCL:one", 5, 60, (plain,), parent_id=1)
    made.range(4, "all", 105, 160, (collective,), parent_id=2, domain="NCCL")
    made.range(5, "all", 204, 260, (other,))
    return made.save()


def rows(db: Path, *arguments: str) -> list[dict[str, Any]]:
    result = run("report", *arguments, "--db", db, "--format", "json")
    assert result.exit_code == 0, result.output
    found: list[dict[str, Any]] = json.loads(result.stdout)["rows"]
    return found


@pytest.mark.parametrize(
    ("glob", "kernels"),
    [
        ("NCCL:*", {GEMM, NCCL}),
        ("all", {NCCL, ADD}),
        ("*:al?", {NCCL}),
    ],
)
def test_kernels_in_ranges_of_a_domain(db: Path, glob: str, kernels: set[str]) -> None:
    assert {row["name"] for row in rows(db, "top-kernels", "--range", glob)} == kernels
    assert {row["name"] for row in rows(db, "top-kernels", "--range", glob, "--by", "range")} == kernels
    assert {row["Kernel Name"] for row in rows(db, "nvtx_kern_sum", "--range", glob)} == kernels
    assert sum(row["instances"] for row in rows(db, "nvtx-ranges", "--range", glob)) == len(kernels)


def test_every_report_over_ranges_takes_a_domain(db: Path) -> None:
    for view in views.shipped():
        if not view.is_private and "/* filter r */" in view.select:
            result = run("report", view.name, "--range", "NCCL:all", "--db", db)
            assert result.exit_code in (0, 3), (view.name, result.output)


def test_names_are_offered_with_their_domain(db: Path) -> None:
    assert "NCCL:all" in run("report", "top-kernels", "--range", "nothing", "--db", db).stderr


def test_calls_of_the_steps_after_the_warm_up(db: Path) -> None:
    assert [row["Num Calls"] for row in rows(db, "cuda_api_sum")] == [5]
    assert [row["Num Calls"] for row in rows(db, "cuda_api_sum", "--skip-warmup", "1")] == [2]


def test_steps_of_a_domain(db: Path) -> None:
    """The range ``all`` of domain NCCL is the only step."""
    (row,) = rows(db, "top-kernels", "--step-range", "NCCL:a*", "--by", "step", "--class", "collective")
    assert (row["step"], row["name"]) == (0, NCCL)


def test_calls_are_of_no_device(db: Path) -> None:
    result = run("report", "cuda_api_sum", "--device", "0", "--db", db)
    assert result.exit_code == 2
    assert "a call is of a thread, not of a GPU" in result.stderr
