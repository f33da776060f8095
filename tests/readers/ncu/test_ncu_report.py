"""Reports of Nsight Compute (``.ncu-rep``), read with NVIDIA's package ``ncu-report``.

A report can only be recorded on a GPU and read by that package, so a module with the part of its interface that is used
takes its place here.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.loading import ask, ingest
from tracedb_ncu import report

STAND_IN = """
class Metric:
    ValueKind_UNKNOWN, ValueKind_STRING, ValueKind_DOUBLE = 0, 2, 4
    def __init__(self, value, unit):
        self.value, self._unit = value, unit
    def has_value(self): return self.value is not None
    def kind(self): return 2 if isinstance(self.value, str) else 4
    def as_double(self): return float(self.value)
    def unit(self): return self._unit

class Action:
    NameBase_DEMANGLED = 1
    METRICS = {
        "launch__grid_dim_x": (2, ""), "launch__grid_dim_y": (66, ""), "launch__grid_dim_z": (1, ""),
        "launch__block_dim_x": (384, ""), "launch__block_dim_y": (1, ""), "launch__block_dim_z": (1, ""),
        "device__attribute_compute_capability_major": (9, ""), "device__attribute_compute_capability_minor": (0, ""),
        "gpu__time_duration.sum": (2240, "nsecond"), "dram__bytes.sum": (10.5, "Kbyte"),
        "launch__func_cache_config": ("none", ""), "sm__missing.sum": (None, ""),
    }
    def name(self, base): return "void gemm<float>(int)" if base == 1 else "gemm"
    def metric_names(self): return list(self.METRICS)
    def metric_by_name(self, name): return Metric(*self.METRICS[name])

class Range:
    def num_actions(self): return 2
    def action_by_idx(self, place): return Action()

class Context:
    def __init__(self, ranges): self._ranges = ranges
    def num_ranges(self): return self._ranges
    def range_by_idx(self, place): return Range()

def load_report(path):
    return Context(1 if open(path, "rb").read(3) == b"NVR" else 0)
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The stand-in can be imported as the package."""
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "ncu_report.py").write_text(STAND_IN)
    monkeypatch.syspath_prepend(folder)
    real = sys.modules.pop(report.PACKAGE, None)
    yield
    sys.modules.pop(report.PACKAGE, None)
    if real is not None:
        sys.modules[report.PACKAGE] = real


def profile(folder: Path, content: bytes = b"NVR\0") -> Path:
    path = folder / "profile.ncu-rep"
    path.write_bytes(content)
    return path


def test_results_are_counted_dispatches(tmp_path: Path, package: None) -> None:
    db = tmp_path / "x.duckdb"
    assert ingest(profile(tmp_path), db=db).exit_code == 0
    columns = "event_id, name, duration_ns, grid_x, grid_y, block_x, is_counted"
    assert ask(db, f"SELECT {columns} FROM kernel_event ORDER BY 1") == [
        (number, "void gemm<float>(int)", 2240, 2, 66, 384, True) for number in (0, 1)
    ]
    assert ask(db, "SELECT value FROM counter WHERE event_id = 1 AND name = 'dram__bytes.sum'") == [(10_500.0,)]
    assert ask(db, "SELECT code, count FROM ingest_issue ORDER BY 1") == [("counter_text", 4), ("machine_metrics", 4)]
    assert ask(db, "SELECT source, status FROM capture") == [("ncu", "complete")]


def test_a_file_that_is_no_report(tmp_path: Path, package: None) -> None:
    done = ingest(profile(tmp_path, b"text"), db=tmp_path / "x.duckdb")
    assert done.exit_code == 1
    assert "profile.ncu-rep: no results that ncu-report reads; if it is a report, export it with" in done.stderr


def test_beside_its_csv_file_a_report_is_left_out(tmp_path: Path) -> None:
    """Also where the package is not installed."""
    profile(tmp_path)
    (tmp_path / "profile.csv").write_text(
        '"ID","Process ID","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC","Metric Name",'
        '"Metric Unit","Metric Value"\n"0","5","k","1","7","(1, 1, 1)","(1, 1, 1)","0","9.0","a.sum","byte","7"\n'
    )
    db = tmp_path / "x.duckdb"
    assert ingest(tmp_path, db=db).exit_code == 0
    assert ask(db, "SELECT code, detail FROM ingest_issue") == [
        ("duplicate_recording", "profile.ncu-rep holds the same results and was not read")
    ]


@pytest.mark.skipif(importlib.util.find_spec(report.PACKAGE) is not None, reason="the package is installed")
def test_without_the_package_the_message_says_what_to_do(tmp_path: Path) -> None:
    done = ingest(profile(tmp_path), db=tmp_path / "x.duckdb")
    assert done.exit_code == 1
    assert "install the package ncu-report, or export it with `ncu --import FILE.ncu-rep" in done.stderr
