"""The ROCm ingester passes the suite of every ingester, on built and on recorded CSV files."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from support import conformance
from support.rocprof_files import ERAS, kernel, kernel_trace, small
from tracedb_rocprof import ingester

SHARED = Path(__file__).resolve().parents[3].parent / "shared" / "data" / "rocprof"


def trace(path: Path, era: str = "7.0", count: int = 40) -> Path:
    """A trace of kernels out of order, a third of them of one name."""
    rows = [
        kernel(f"void k{at % 7 if at % 3 else 0}<int, float>(float*)", at * 7919 % 100_000, at * 7919 % 100_000 + at)
        for at in range(1, count + 1)
    ]
    return kernel_trace(path, rows, era)


def count(path: Path) -> dict[str, int]:
    """Count by the standard library's reader."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = sum(1 for _ in csv.reader(file)) - 1
    return {"kernel": rows, "memcpy": 0, "events": rows}


def shuffled(path: Path, folder: Path) -> Path:
    """The same lines, the last first."""
    head, *lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    target = folder / f"shuffled-{path.name}"
    target.write_text(head + "".join(reversed(lines)), encoding="utf-8")
    return target


def test_files_of_nobody(tmp_path: Path) -> None:
    conformance.check_foreign(ingester, tmp_path)


@pytest.mark.parametrize("era", ERAS)
def test_built_files(era: str, tmp_path: Path) -> None:
    path = trace(tmp_path / "a_kernel_trace.csv", era)
    conformance.check_rows(ingester, path)
    conformance.check_shuffled(ingester, path, shuffled(path, tmp_path))
    conformance.check_counts(ingester, path, count)


def test_built_sets(tmp_path: Path) -> None:
    made = small(tmp_path / "set")
    made.counter(1, "SQ_WAVES", 32, 1_000, 1_500)
    conformance.check_rows(ingester, *made.save())
    conformance.check_same_twice(ingester, *made.save())
    (tmp_path / "cut").mkdir()
    conformance.check_cut(ingester, trace(tmp_path / "a_kernel_trace.csv"), tmp_path / "cut")


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
def test_memory(tmp_path: Path) -> None:
    path = trace(tmp_path / "a_kernel_trace.csv", count=40_000)
    conformance.check_memory("tracedb_rocprof", path, 400, tmp_path)


@pytest.mark.shared
@pytest.mark.skipif(not SHARED.exists(), reason="the real traces are not beside the repository")
class TestRecorded:
    @pytest.mark.parametrize("name", ["markers_aq4", "quoted_csv", "gemma_moe", "component_m8", "counters_pair"])
    def test_rows(self, name: str) -> None:
        conformance.check_rows(ingester, *sorted((SHARED / name).iterdir()))

    def test_however_they_stand(self, tmp_path: Path) -> None:
        path = SHARED / "quoted_csv" / "prefill_kernel_trace.csv"
        conformance.check_shuffled(ingester, path, shuffled(path, tmp_path))
        conformance.check_counts(ingester, path, count)
