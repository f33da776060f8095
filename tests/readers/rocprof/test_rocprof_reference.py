"""Recorded rocprofv3 traces agree with the profiler's own statistics and with other known numbers."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import duckdb
import pytest

from support.command import report
from support.loading import ask, ingest
from support.rocprof_loaded import captures, read, read_capture

SHARED = Path(__file__).resolve().parents[3].parent / "shared" / "data" / "rocprof"

pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(not SHARED.exists(), reason="the real traces are not beside the repository"),
]


LINK = ("correlation_id", "launch_id")


def loaded(folder: Path, name: str) -> Path:
    db = folder / f"{name.replace('/', '_')}.duckdb"
    assert ingest(SHARED / name, db=db).exit_code == 0
    return db


@pytest.fixture(scope="module")
def markers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return loaded(tmp_path_factory.mktemp("markers"), "markers_aq4")


@pytest.fixture(scope="module")
def component(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return loaded(tmp_path_factory.mktemp("component"), "component_m8")


def said(path: Path) -> dict[str, dict[str, str]]:
    """Return the rows of a file of statistics by name."""
    with path.open(newline="") as file:
        return {row["Name"]: row for row in csv.DictReader(file)}


def printed(value: float) -> str:
    """Return a number as the tool prints it."""
    return f"{value:.6f}" if value >= 1 else f"{value:.8e}"


def as_printed(name: str, row: tuple[Any, ...]) -> dict[str, str]:
    calls, total, mean, share, least, most, deviation = row
    return {
        "Name": name,
        "Calls": str(calls),
        "TotalDurationNs": str(total),
        "AverageNs": printed(mean),
        "Percentage": f"{share:.2f}" if share >= 1 else f"{share:.4f}",
        "MinNs": str(least),
        "MaxNs": str(most),
        "StdDev": printed(deviation),
    }


class TestStatistics:
    COLUMNS = "calls, total_ns, avg_ns, share_percent, min_ns, max_ns, stddev_ns"

    def test_kernels_equal_to_the_printed_digit(self, component: Path) -> None:
        rows = ask(component, f"SELECT name, {self.COLUMNS} FROM v1.top_kernels")
        found = {name: as_printed(name, tuple(row)) for name, *row in rows}
        wanted = said(SHARED / "component_m8" / "component-m8-evicted_kernel_stats.csv")
        assert len(wanted) == 11
        assert found == wanted

    def test_copies_equal_to_the_printed_digit(self, component: Path) -> None:
        rows = ask(
            component,
            """SELECT name, count(*), sum(duration_ns), avg(duration_ns),
                100 * sum(duration_ns) / sum(sum(duration_ns)) OVER (), min(duration_ns), max(duration_ns),
                coalesce(stddev_samp(duration_ns), 0)
            FROM main.kernel_event WHERE kind = 'memcpy' GROUP BY name""",
        )
        found = {name: as_printed(name, tuple(row)) for name, *row in rows}
        assert found == said(SHARED / "component_m8" / "component-m8-evicted_memory_copy_stats.csv")

    def test_the_cross_check_agrees(self) -> None:
        for name in ("component_m8", "legacy/rocprof_v1_results.csv"):
            stats = [SHARED / "legacy" / "rocprof_v1_results.stats.csv"] if "legacy" in name else []
            files = [SHARED / name] if stats else sorted((SHARED / name).iterdir())
            (capture,) = captures(*files, *stats)
            assert read_capture(capture).faults == {}

    def test_the_gpu_among_others(self) -> None:
        reading = read(*sorted((SHARED / "component_m8").iterdir()))
        assert reading.rows("device", "device_id", "arch", "sm_count", "max_clock_mhz", "is_used") == [
            (0, "gfx1030", 72, 2570, False),
            (1, "gfx1201", 64, 2350, True),
            (2, "gfx1030", 72, 2570, False),
        ]
        assert set(reading.kernels("device_id")) == {1}


class TestMarkers:
    def test_counts(self, markers: Path) -> None:
        assert ask(markers, "SELECT kind, count(*) FROM main.kernel_event GROUP BY kind ORDER BY kind") == [
            ("kernel", 12_263),
            ("memcpy", 10_845),
        ]
        assert ask(markers, "SELECT count(*), max(depth), any_value(style) FROM main.annotation") == [
            (12, 0, "push_pop")
        ]

    def test_dispatches_inside_by_time(self, markers: Path) -> None:
        rows = ask(
            markers,
            """SELECT m.rule, e.kind, count(*) FROM main.annotation_kernel AS m
            INNER JOIN main.kernel_event AS e USING (capture_id, event_id) GROUP BY ALL""",
        )
        assert rows == [("time", "kernel", 11_136)]
        assert ask(markers, "SELECT rule, sum(gpu_ops) FROM v1.nvtx_ranges GROUP BY rule") == [("time", 11_136)]

    def test_classes(self, markers: Path) -> None:
        """Names with "gemma" in them are no GEMMs because of it."""
        rows = ask(markers, "SELECT name, class FROM v1.top_kernels WHERE name LIKE '%gemma_full_attn%'")
        assert {kind for _, kind in rows} <= {"attention"}


def test_every_field_quoted() -> None:
    (decode, prefill, stall) = captures(SHARED / "quoted_csv")
    reading = read_capture(decode)
    assert (len(reading.kernels()), len(reading.rows("launch", "name"))) == (144, 920)
    known = set(reading.rows("launch", "correlation_id"))
    linked = [(correlation in known) == (launch is not None) for correlation, launch in reading.kernels(*LINK)]
    assert linked == [True] * 144
    assert sum(launch is not None for _, launch in reading.kernels(*LINK)) > 20
    assert len(read_capture(prefill).kernels()) == 1_128
    counted = read_capture(stall)
    assert (len(counted.kernels()), len(counted.rows("counter", "name"))) == (54, 540)


def test_a_gemma_is_no_gemm(tmp_path: Path) -> None:
    db = loaded(tmp_path, "gemma_moe")
    with duckdb.connect(str(db), read_only=True) as connection:
        rows = connection.execute(
            "SELECT kind, count(*), count(launch_id) FROM main.kernel_event GROUP BY ALL ORDER BY 1"
        )
        assert rows.fetchall() == [("kernel", 5, 5), ("memcpy", 31, 31)]


def test_legacy_results_of_rocprof_v1() -> None:
    (capture,) = captures(*sorted((SHARED / "legacy").glob("*.csv")))
    reading = read_capture(capture)
    assert (reading.capture["source"], len(reading.kernels()), reading.capture["pid"]) == (
        "rocprofv1",
        1_004,
        2_046_349,
    )
    assert reading.kernels()[1][0].startswith("void laplacian_kernel<double>(double*, double const*")


def test_two_vendors_under_one_classifier(tmp_path: Path) -> None:
    """One model on an H100, on an MI300X, and a recording of rocprofv3: the same classes, told apart by vendor."""
    db = tmp_path / "vendors.duckdb"
    public = SHARED.parent / "torch" / "public"
    models = [public / f"tracelens_{gpu}_bert_small.json.gz" for gpu in ("h100", "mi300")]
    assert ingest(*models, SHARED / "component_m8", db=db).exit_code == 0
    rows = report(db, "matmul-fraction", "--by", "vendor", "--source", "torch")
    found = {(row["vendor"], row["class"]): row["calls"] for row in rows}
    assert {found[vendor, "matmul"] for vendor in ("NVIDIA", "AMD")} == {26}
    assert {kind for _, kind in found} == {kind for vendor, kind in found if vendor == "AMD"}
    shares = {row["vendor"]: row["share_percent"] for row in rows if row["class"] == "matmul"}
    assert 60 < shares["NVIDIA"] < 70 and 40 < shares["AMD"] < 50
    names = report(db, "top-kernels", "--by", "vendor", "--top", "0")
    assert sum(row["calls"] for row in names if row["vendor"] == "AMD") == 60 + 22
