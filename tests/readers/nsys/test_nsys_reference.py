"""Reports named like those of `nsys stats` print the same numbers: every row and column of every reference CSV."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from support import recordings
from support.command import run
from tracedb.pipeline import run as pipeline

REFERENCE = recordings.REFERENCE / "nsys"
EXPORTS = (
    ("single_forward", "single_train", "single_bf16", "single_graph", "fsdp_4gpu")
    if recordings.IS_WHOLE
    else ("single_forward", "single_graph")
)
REPORTS = (
    "cuda_gpu_kern_sum",
    "cuda_gpu_kern_gb_sum",
    "cuda_gpu_mem_time_sum",
    "cuda_gpu_mem_size_sum",
    "cuda_gpu_sum",
    "cuda_api_sum",
    "cuda_kern_exec_sum",
    "nvtx_sum",
    "nvtx_pushpop_sum",
    "nvtx_kern_sum",
    "nvtx_gpu_proj_sum",
)
pytestmark = pytest.mark.shared

NAMES = (
    "Name", "Range", "Operation", "Category", "Style", "GridXYZ", "BlockXYZ", "PID", "TID", "DevId", "NVTX Range",
    "Kernel Name", "API Name",
)  # fmt: skip
Table = list[list[str]]


@pytest.fixture(scope="module")
def databases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Each export in a database of its own."""
    folder = tmp_path_factory.mktemp("nsys")
    for name in EXPORTS:
        (outcome,) = pipeline.ingest(recordings.DATA / "nsys" / f"{name}.sqlite", db=folder / f"{name}.duckdb")
        assert outcome.error is None
    return {name: folder / f"{name}.duckdb" for name in EXPORTS}


def test_no_reference_is_left_out() -> None:
    there = {(path.parent.name, path.stem) for path in REFERENCE.glob("*/*.csv")}
    assert there == {(export, report) for export in EXPORTS for report in REPORTS}


@pytest.mark.parametrize("report", REPORTS)
@pytest.mark.parametrize("export", EXPORTS)
def test_every_row_is_that_of_nsys(databases: dict[str, Path], export: str, report: str) -> None:
    done = run("report", report, "--db", databases[export], "--format", "csv")
    assert done.exit_code == 0, done.stderr
    found = list(csv.reader(io.StringIO(done.stdout, newline="")))
    with (REFERENCE / export / f"{report}.csv").open(newline="") as file:
        expected = list(csv.reader(file))
    assert found[0] == expected[0]
    mine, theirs = by_name(found), by_name(expected)
    assert mine.keys() == theirs.keys()
    faults = [
        (name, column, value, printed)
        for name, row in theirs.items()
        for column, value, printed in zip(expected[0], mine[name], row, strict=True)
        if not is_same(value, printed)
    ]
    assert faults == []
    assert places(found) == places(expected)


def by_name(table: Table) -> dict[tuple[str, ...], list[str]]:
    """Rows by the columns that are no numbers."""
    header, *rows = table
    named = {tuple(row[place] for place, column in enumerate(header) if column in NAMES): row for row in rows}
    assert len(named) == len(rows)
    return named


def places(table: Table) -> list[str]:
    """The column that rows are ordered by, as printed."""
    column = next(
        name for name in ("TAvg (ns)", "Total Proj Time (ns)", "Total Time (ns)", "Total (MB)") if name in table[0]
    )
    return [f"{float(row[table[0].index(column)]):.1f}" for row in table[1:]]


def is_same(mine: str, printed: str) -> bool:
    """Whether a value is the printed one; at a tie of the last digit either neighbour is right."""
    if mine == printed or not mine or not printed:
        return mine == printed
    try:
        difference = abs(float(mine) - float(printed))
    except ValueError:
        return False
    return difference == 0
