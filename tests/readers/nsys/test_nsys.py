"""nsys exports of every release: how their rows are stored."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from support.loading import opened
from support.nsys_files import EPOCH_NS, ERAS, PID, Nsys, process
from support.nsys_loaded import Loaded, load, step

pytestmark = pytest.mark.usefixtures("only_few_views")

GEMM = "void gemm<(int)4>(float *)"
TABLES = {
    "capture": "* EXCLUDE (path, sha256, size_bytes, metadata, ingested_at)",
    "device": "* EXCLUDE (capture_id)",
    "kernel_event": "* EXCLUDE (capture_id)",
    "launch": "* EXCLUDE (capture_id)",
    "annotation": "* EXCLUDE (capture_id)",
    "annotation_kernel": "* EXCLUDE (capture_id)",
    "ingest_issue": "* EXCLUDE (capture_id)",
}


def tables(loaded: Loaded) -> dict[str, list[Any]]:
    with opened(loaded.db) as connection:
        return {
            table: connection.execute(f"SELECT {columns} FROM main.{table} ORDER BY ALL").fetchall()
            for table, columns in TABLES.items()
        }


@pytest.fixture(scope="module")
def by_era(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Loaded]:
    """The step as an export of each era, loaded once; the export stays beside the database."""
    return cache(lambda era: load(tmp_path_factory.mktemp("era"), step(era)))


@pytest.fixture
def found(by_era: Callable[[str], Loaded], era: str) -> Loaded:
    return by_era(era)


@pytest.mark.parametrize("era", ERAS)
class TestEras:
    def test_kernels(self, found: Loaded) -> None:
        assert found.rows(
            "kernel_event WHERE kind = 'kernel'", "name", "start_ns", "duration_ns", order="start_ns"
        ) == [
            ("ncclDevKernel_AllReduce", 1000, 100),
            (GEMM, 1200, 300),
        ]
        sizes = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "registers_per_thread")
        assert found.rows(f"kernel_event WHERE name = '{GEMM}'", *sizes) == [(8, 4, 2, 128, 1, 1, 32)]
        shared = ("static_shared_bytes", "dynamic_shared_bytes", "shared_bytes")
        assert found.rows(f"kernel_event WHERE name = '{GEMM}'", *shared) == [(1024, 512, 1536)]

    def test_copies(self, found: Loaded) -> None:
        assert found.rows("kernel_event WHERE kind <> 'kernel'", "kind", "name", "bytes", "copy_kind") == [
            ("memcpy", "[CUDA memcpy Host-to-Device]", 4096, "HtoD"),
            ("memset", "[CUDA memset]", 64, None),
        ]

    def test_links(self, found: Loaded) -> None:
        joined = "kernel_event AS k LEFT JOIN main.launch AS l USING (capture_id, launch_id)"
        assert found.rows(joined, "k.start_ns", "l.start_ns", "l.name", order="1") == [
            (1000, 200, "cudaLaunchKernel"),
            (1200, 400, "cudaLaunchKernel"),
            (1600, 600, "cudaMemcpyAsync"),
            (1800, None, None),
        ]
        assert found.held() == [("forward", 1000), ("forward", 1200), ("ncclAllReduce", 1000)]

    def test_account(self, found: Loaded, era: str) -> None:
        events = sum(
            len(rows)
            for table, (columns, rows) in step(era).contents().items()
            if "start" in columns or "CUPTI" in table
        )
        assert found.one("capture", "events_read", "events_skipped", "rows_written") == (events, 2, events - 2)
        assert found.issues == {"nvtx_definitions": 1, "osrt_api": 1}

    def test_header(self, found: Loaded, era: str) -> None:
        version = {"2021": None, "2022.1": "nsys 2022.1.3.3", "2023.4": "nsys 2023.4.4.54", "2025.3": "nsys 2025.3.2.0"}
        assert found.one("capture", "tool_version") == version.get(era, "nsys 2026.2.1.210")
        assert found.one("capture", "clock_zero_unix_ns") == (None if era == "2021" else EPOCH_NS)
        assert found.one("capture", "source", "pid", "status", "rank") == ("nsys", PID, "complete", None)
        assert found.one("device", "device_id", "name", "sm_count", "arch", "uuid", "is_used") == (
            0,
            "NVIDIA H100",
            132,
            "sm_90",
            "gpu-0",
            True,
        )

    def test_parquet_gives_the_same(self, found: Loaded, tmp_path: Path, era: str) -> None:
        parquet = Loaded(step(era).parquet(tmp_path / "a_pqtdir"), db=tmp_path / "b.duckdb")
        assert tables(found) == tables(parquet)

    def test_every_way_to_read_sqlite_gives_the_same(
        self, found: Loaded, tmp_path: Path, era: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = step(era).sqlite(tmp_path / "a.sqlite")
        monkeypatch.setenv("TRACEDB_READER", "python")
        driver = Loaded(path, db=tmp_path / "b.duckdb")
        assert tables(found) == tables(driver)


def test_rows_in_any_order_give_the_same(tmp_path: Path) -> None:
    made = step()
    first = Loaded(made.sqlite(tmp_path / "a.sqlite"), db=tmp_path / "a.duckdb")
    for rows in made.tables.values():
        rows.reverse()
    other = Loaded(made.sqlite(tmp_path / "b.sqlite"), db=tmp_path / "b.duckdb")
    columns = ("kind", "name", "start_ns", "duration_ns", "correlation_id")
    assert first.rows("kernel_event", *columns) == other.rows("kernel_event", *columns)
    assert first.held() == other.held()


def test_kernels_are_stored_by_device_and_time(tmp_path: Path) -> None:
    made = Nsys()
    for start, device in ((300, 1), (100, 1), (200, 0)):
        made.kernel(start, start + 10, device=device)
    assert load(tmp_path, made).rows("kernel_event", "start_ns", order="rowid") == [200, 100, 300]


class TestStrings:
    def test_nothing_of_the_environment_is_stored(self, tmp_path: Path) -> None:
        found = load(tmp_path, step())
        assert found.errors == []
        assert b"hunter2" not in found.db.read_bytes()
        assert b"someone" not in found.db.read_bytes()

    def test_a_missing_string_leaves_its_number(self, tmp_path: Path) -> None:
        made = Nsys()
        made.kernel(0, 10, demangledName=999)
        assert load(tmp_path, made).rows("kernel_event", "name") == ["(string 999)"]

    def test_the_mangled_name_stands_in(self, tmp_path: Path) -> None:
        made = Nsys()
        made.kernel(0, 10, demangledName=None, mangledName=made.string("_Z4gemm"))
        made.kernel(20, 30, demangledName=None, mangledName=None)
        assert load(tmp_path, made).rows("kernel_event", "name") == ["_Z4gemm", "gemm"]

    def test_bytes_that_are_no_text_are_replaced(self, tmp_path: Path) -> None:
        made = Nsys()
        made.kernel(0, 10, demangledName=77)
        made.strings["x"] = 76
        path = made.sqlite(tmp_path / "a.sqlite")
        import sqlite3

        with sqlite3.connect(path) as connection:
            connection.execute("INSERT INTO StringIds VALUES (77, CAST(x'6b8f01' AS TEXT))")
        connection.close()
        assert Loaded(path, db=tmp_path / "a.duckdb").rows("kernel_event", "name") == ["k\ufffd\x01"]

    @pytest.mark.parametrize(
        ("recorded", "stored"),
        [
            ("cudaLaunchKernel_v7000", "cudaLaunchKernel"),
            ("cudaLaunchKernelExC_v11060", "cudaLaunchKernelExC_v11060"),
            ("cuMemAlloc_v2", "cuMemAlloc_v2"),
            ("cuLaunchKernel", "cuLaunchKernel"),
        ],
    )
    def test_calls_are_named_as_nsys_prints_them(self, tmp_path: Path, recorded: str, stored: str) -> None:
        made = Nsys()
        made.call(0, 10, recorded)
        assert load(tmp_path, made).rows("launch", "name") == [stored]


class TestGraphs:
    def test_replays_as_a_whole(self, tmp_path: Path) -> None:
        made = step()
        launched = made.call(700, 720, "cudaGraphLaunch_v10000")
        made.add("GRAPH_TRACE", start=2000, end=3000, deviceId=0, contextId=1, streamId=7, globalPid=process(),
                 correlationId=launched, graphId=5, graphExecId=9)  # fmt: skip
        found = load(tmp_path, made)
        columns = ("name", "duration_ns", "graph_id", "launch_id IS NOT NULL")
        assert found.rows("kernel_event WHERE kind = 'graph'", *columns) == [("CUDA graph 5", 1000, 5, True)]
        assert found.one("capture", "status") == "complete"

    def test_a_replay_without_end_is_left_out(self, tmp_path: Path) -> None:
        made = step()
        made.add("GRAPH_TRACE", start=2000, end=0, globalPid=process(), graphId=5)
        found = load(tmp_path, made)
        assert found.rows("kernel_event WHERE kind = 'graph'", "name") == []
        assert found.issues["times_unusable"] == 1

    def test_nodes_share_a_launch(self, tmp_path: Path) -> None:
        made = Nsys("2026.2")
        launched = made.call(0, 10, "cudaGraphLaunch_v10000")
        for node in range(24):
            made.kernel(100 + node, 101 + node, correlation=launched, graphNodeId=1000 + node, graphId=5)
        found = load(tmp_path, made)
        assert len(found.rows("launch", "name")) == 1
        columns = ("count(*)", "count(DISTINCT launch_id)", "count(DISTINCT graph_node_id)", "min(graph_id)")
        assert found.rows("kernel_event", *columns) == [(24, 1, 24, 5)]

    def test_graph_launches_without_kernels_say_so(self, tmp_path: Path) -> None:
        made = Nsys()
        made.call(0, 10, "cudaGraphLaunch_v10000")
        found = load(tmp_path, made)
        assert found.one("capture", "status") == "no_gpu_activity"
        assert "--cuda-graph-trace=node" in found.one("ingest_issue WHERE code = 'no_gpu_activity'", "detail")


class TestClock:
    @pytest.mark.parametrize(
        ("settings", "zero"),
        [
            ({}, EPOCH_NS),
            ({"EXPORT_PARAM_TIME_SHIFT": "1000"}, EPOCH_NS - 1000),
            ({"EXPORT_PARAM_TIME_NORMALIZE": "true"}, 0),
            ({"EXPORT_PARAM_TIME_NORMALIZE": "false", "EXPORT_PARAM_TIME_SHIFT": ""}, EPOCH_NS),
        ],
    )
    def test_zero(self, tmp_path: Path, settings: dict[str, str], zero: int) -> None:
        made = step()
        for name, value in settings.items():
            made.add("META_DATA_EXPORT", name=name, value=value)
        assert load(tmp_path, made).one("capture", "clock_zero_unix_ns") == zero
