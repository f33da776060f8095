"""nsys exports of every era: what becomes of their rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ingest.nsys_files import (
    EPOCH_NS,
    ERAS,
    MARK,
    OTHER_PID,
    PID,
    START_END,
    THREAD_NAME,
    Loaded,
    Nsys,
    load,
    process,
    thread,
)

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


def step(era: str = "2025.3") -> Nsys:
    """One step: a range around two launches, a copy, a memset and waits."""
    made = Nsys(era)
    made.domain(1, "NCCL")
    made.range(100, 500, "forward")
    made.range(150, 300, "ncclAllReduce", domain=1)
    made.launch(200, 1000, 1100, "ncclDevKernel_AllReduce")
    made.launch(400, 1200, 1500)
    copied = made.call(600, 620, "cudaMemcpyAsync_v3020")
    made.copy(1600, 1700, correlation=None, correlationId=copied)
    made.add(
        "MEMSET", start=1800, end=1810, deviceId=0, contextId=1, streamId=7, globalPid=process(), bytes=64, value=0
    )
    made.add(
        "SYNCHRONIZATION", start=100, end=9000, deviceId=0, contextId=1, streamId=7, globalPid=process(), syncType=3
    )
    made.add("OSRT_API", start=1, end=2, globalTid=thread(), nameId=made.string("poll"))
    return made


def tables(loaded: Loaded) -> dict[str, list[Any]]:
    return {table: loaded.rows(table, columns) for table, columns in TABLES.items()}


@pytest.mark.parametrize("era", ERAS)
class TestEras:
    def test_kernels(self, tmp_path: Path, era: str) -> None:
        found = load(tmp_path, step(era))
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

    def test_copies(self, tmp_path: Path, era: str) -> None:
        found = load(tmp_path, step(era))
        assert found.rows("kernel_event WHERE kind <> 'kernel'", "kind", "name", "bytes", "copy_kind") == [
            ("memcpy", "[CUDA memcpy Host-to-Device]", 4096, "HtoD"),
            ("memset", "[CUDA memset]", 64, None),
        ]

    def test_links(self, tmp_path: Path, era: str) -> None:
        found = load(tmp_path, step(era))
        joined = "kernel_event AS k LEFT JOIN main.launch AS l USING (capture_id, launch_id)"
        assert found.rows(joined, "k.start_ns", "l.start_ns", "l.name", order="1") == [
            (1000, 200, "cudaLaunchKernel"),
            (1200, 400, "cudaLaunchKernel"),
            (1600, 600, "cudaMemcpyAsync"),
            (1800, None, None),
        ]
        assert found.held() == [("forward", 1000), ("forward", 1200), ("ncclAllReduce", 1000)]

    def test_account(self, tmp_path: Path, era: str) -> None:
        made = step(era)
        found = load(tmp_path, made)
        events = sum(
            len(rows) for table, (columns, rows) in made.contents().items() if "start" in columns or "CUPTI" in table
        )
        assert found.one("capture", "events_read", "events_skipped", "rows_written") == (events, 3, events - 3)
        assert found.issues == {"nvtx_definitions": 1, "osrt_api": 1, "synchronization": 1}

    def test_header(self, tmp_path: Path, era: str) -> None:
        found = load(tmp_path, step(era))
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

    def test_parquet_gives_the_same(self, tmp_path: Path, era: str) -> None:
        made = step(era)
        sqlite = Loaded(made.sqlite(tmp_path / "a.sqlite"), db=tmp_path / "a.duckdb")
        parquet = Loaded(made.parquet(tmp_path / "a_pqtdir"), db=tmp_path / "b.duckdb")
        assert tables(sqlite) == tables(parquet)

    def test_standard_library_gives_the_same(self, tmp_path: Path, era: str, monkeypatch: pytest.MonkeyPatch) -> None:
        path = step(era).sqlite(tmp_path / "a.sqlite")
        driver = Loaded(path, db=tmp_path / "a.duckdb")
        monkeypatch.setattr("tracedb_nsys.sqlite.adbc", None)
        assert tables(Loaded(path, db=tmp_path / "b.duckdb")) == tables(driver)


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


class TestRanges:
    def test_styles(self, tmp_path: Path) -> None:
        made = Nsys()
        made.range(0, 100, "a")
        made.range(10, 50, "b", kind=START_END)
        made.range(20, None, "c", kind=MARK)
        made.range(30, 40, "d", kind=70)
        made.range(30, None, "worker", kind=THREAD_NAME)
        found = load(tmp_path, made)
        columns = ("name", "style", "start_ns", "duration_ns", "is_open", "depth")
        assert found.rows("annotation", *columns) == [
            ("a", "push_pop", 0, 100, False, 0),
            ("b", "start_end", 10, 40, False, 1),
            ("c", "mark", 20, None, False, None),
            ("d", "push_pop", 30, 10, False, 2),
        ]
        assert found.one("capture", "status") == "no_gpu_activity"

    def test_names_are_registered_or_plain_or_missing(self, tmp_path: Path) -> None:
        made = Nsys()
        made.range(0, 1, "registered")
        made.range(2, 3, "plain", registered=False)
        made.range(4, 5)
        assert load(tmp_path, made).rows("annotation", "name", order="start_ns") == ["registered", "plain", "(no name)"]

    @pytest.mark.parametrize("registered", [True, False])
    def test_domains_are_of_their_process(self, tmp_path: Path, registered: bool) -> None:
        made = Nsys()
        made.domain(1, "NCCL", registered=registered)
        made.domain(1, "TensorRT", pid=OTHER_PID, registered=registered)
        made.range(0, 10, "a", domain=1)
        made.range(0, 10, "b", domain=1, tid=OTHER_PID, pid=OTHER_PID)
        made.range(0, 10, "c", domain=2)
        made.range(0, 10, "d")
        assert load(tmp_path, made).rows("annotation", "name", "domain") == [
            ("a", "NCCL"),
            ("b", "TensorRT"),
            ("c", None),
            ("d", None),
        ]

    def test_a_range_still_open_lasts_until_the_last_that_nvtx_tells(self, tmp_path: Path) -> None:
        made = Nsys()
        made.range(0, None, "open")
        made.range(400, None, "mark", kind=MARK)
        made.launch(390, 1000, 1010)
        made.launch(391, 2000, 2010)
        found = load(tmp_path, made)
        assert found.rows("annotation WHERE is_open", "name", "duration_ns") == [("open", None)]
        assert found.held() == [("open", 1000)]
        assert json.loads(found.one("capture", "metadata"))["last_annotation_ns"] == 400

    def test_a_range_that_ends_on_another_thread_is_of_none(self, tmp_path: Path) -> None:
        made = Nsys()
        made.range(0, 100, "roaming", kind=START_END, endGlobalTid=thread(PID + 1))
        made.range(0, 100, "staying", kind=START_END)
        made.launch(10, 1000, 1010)
        found = load(tmp_path, made)
        assert found.rows("annotation", "name", "thread_id") == [("roaming", None), ("staying", PID)]
        assert found.held("thread") == [("staying", 1000)]
        assert found.held("process") == [("roaming", 1000), ("staying", 1000)]
        assert found.issues["range_over_threads"] == 1

    def test_times_before_zero(self, tmp_path: Path) -> None:
        made = Nsys()
        made.range(-500, -100, "early")
        made.kernel(-300, -200)
        found = load(tmp_path, made)
        assert found.rows("annotation", "start_ns", "duration_ns") == [(-500, 400)]
        assert found.rows("kernel_event", "start_ns", "duration_ns") == [(-300, 100)]

    def test_calls_of_libraries_become_ranges(self, tmp_path: Path) -> None:
        made = Nsys()
        made.add("MPI_COLLECTIVES_EVENTS", start=0, end=10, globalTid=thread(), textId=made.string("MPI_Allreduce"))
        made.add("CUBLAS_EVENTS", start=20, end=40, globalTid=thread(), nameId=made.string("cublasSgemm"))
        made.add("CUPTI_ACTIVITY_KIND_OPENACC_LAUNCH", start=50, end=60, globalTid=thread(), nameId=made.string("acc"))
        made.range(0, 5, "plain")
        made.launch(22, 1000, 1010)
        found = load(tmp_path, made)
        assert found.rows("annotation", "domain", "name", "style", "start_ns", "duration_ns") == [
            ("MPI", "MPI_Allreduce", "user", 0, 10),
            ("OpenACC", "acc", "user", 50, 10),
            ("cuBLAS", "cublasSgemm", "user", 20, 20),
            (None, "plain", "push_pop", 0, 5),
        ]
        assert found.held() == [("cublasSgemm", 1000)]
        assert len(set(found.rows("annotation", "annotation_id"))) == 4

    def test_payloads_of_nccl(self, tmp_path: Path) -> None:
        made = Nsys()
        made.domain(1, "NCCL")
        made.add("NVTX_PAYLOAD_SCHEMAS", domainId=1, schemaId=1)
        where = {"NCCL communicator ID": "0xabc", "No. of ranks": 8, "Rank": 3, "CUDA device": 3}
        made.range(0, 10, "ncclCommInitRank", domain=1, jsonText=json.dumps(where))
        what = {"NCCL communicator ID": "0xabc", "Message size [bytes]": 1 << 20, "Reduction operation": "Sum"}
        made.range(100, 200, "ncclAllReduce", domain=1, jsonTextId=made.string(json.dumps(what)))
        made.launch(120, 1000, 1100, "ncclDevKernel_AllReduce")
        made.launch(300, 1200, 1300)
        found = load(tmp_path, made)
        columns = ("collective", "bytes", "group_name", "group_size")
        assert found.rows("kernel_event", *columns, order="start_ns") == [
            ("ncclAllReduce", 1 << 20, "0xabc", 8),
            (None, None, None, None),
        ]
        assert found.one("capture", "rank", "world_size") == (3, 8)


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


class TestProcesses:
    def test_each_is_a_capture_with_ids_of_its_own(self, tmp_path: Path) -> None:
        made = Nsys()
        for pid, name in ((PID, "a"), (OTHER_PID, "b")):
            made.correlations = 0
            made.range(0, 100, f"range {name}", tid=pid, pid=pid)
            made.launch(10, 1000, 1010, name, tid=pid, pid=pid)
        found = load(tmp_path, made)
        assert found.rows("capture", "pid", "part", "status") == [(PID, 0, "complete"), (OTHER_PID, 1, "complete")]
        joined = "kernel_event AS k JOIN main.capture AS c USING (capture_id) JOIN main.launch AS l"
        joined += " USING (capture_id, launch_id)"
        assert found.rows(joined, "c.pid", "k.name", "l.process_id") == [(PID, "a", PID), (OTHER_PID, "b", OTHER_PID)]
        assert found.held() == [("range a", 1000), ("range b", 1000)]
        assert found.issues["several_processes"] == 2

    def test_one_number_on_two_machines(self, tmp_path: Path) -> None:
        made = Nsys()
        for vm, name in ((1, "a"), (2, "b")):
            called = made.call(0, 10, correlation=7)
            made.tables["RUNTIME"][-1]["globalTid"] = thread(vm=vm)
            made.kernel(100, 110, name, correlation=called, globalPid=process(vm=vm))
        found = load(tmp_path, made)
        assert found.rows("kernel_event", "name", "launch_id IS NOT NULL") == [("a", True), ("b", True)]
        assert found.rows("capture", "pid") == [PID, PID]

    def test_one_without_gpu_work_says_so(self, tmp_path: Path) -> None:
        made = step()
        made.range(0, 10, "loader", tid=OTHER_PID, pid=OTHER_PID)
        found = load(tmp_path, made)
        assert found.rows("capture", "pid", "status") == [(PID, "complete"), (OTHER_PID, "no_gpu_activity")]

    def test_ranks_of_mpi(self, tmp_path: Path) -> None:
        made = Nsys()
        for rank, pid in enumerate((PID, OTHER_PID)):
            made.add("MPI_RANKS", globalPid=process(pid), rank=rank)
            made.launch(10, 1000, 1010, tid=pid, pid=pid)
        assert load(tmp_path, made).rows("capture", "pid", "rank") == [(PID, 0), (OTHER_PID, 1)]

    def test_without_the_column_correlation_tells(self, tmp_path: Path) -> None:
        made = Nsys()
        for pid, correlation in ((PID, 1), (OTHER_PID, 2), (PID, 3), (OTHER_PID, 3)):
            made.call(correlation, correlation + 1, correlation=correlation, tid=pid, pid=pid)
        for correlation in (1, 2, 3):
            made.kernel(100, 110, f"k{correlation}", correlation=correlation, globalPid=None)
        found = load(tmp_path, made)
        joined = "kernel_event JOIN main.capture USING (capture_id)"
        assert found.rows(joined, "name", "pid", "launch_id IS NOT NULL") == [
            ("k1", PID, True),
            ("k2", OTHER_PID, True),
            ("k3", PID, False),
        ]
        assert found.issues["process_guessed"] == 3


class TestDevices:
    def gpus(self, *names: str) -> Nsys:
        """GPUs whose id and CUDA number run against each other."""
        made = Nsys()
        made.tables["TARGET_INFO_GPU"].clear()
        for number, name in enumerate(names):
            made.add("TARGET_INFO_GPU", vmId=1 << 48, id=number, name=name, cuDevice=len(names) - 1 - number)
        return made

    def test_a_number_is_that_of_the_process(self, tmp_path: Path) -> None:
        made = self.gpus("A100", "T4")
        made.add("TARGET_INFO_CUDA_DEVICE", gpuId=1, cudaId=0, pid=PID)
        made.add("TARGET_INFO_CUDA_DEVICE", gpuId=0, cudaId=0, pid=OTHER_PID)
        made.kernel(0, 10)
        made.kernel(0, 10, pid=OTHER_PID)
        joined = "device JOIN main.capture USING (capture_id)"
        assert load(tmp_path, made).rows(joined, "pid", "device_id", "name", "is_used") == [
            (PID, 0, "T4", True),
            (OTHER_PID, 0, "A100", True),
        ]

    def test_before_2025_the_cuda_number_tells_not_the_id(self, tmp_path: Path) -> None:
        made = self.gpus("A100", "T4")
        made.kernel(0, 10, device=0)
        assert load(tmp_path, made).rows("device", "device_id", "name", "is_used") == [
            (0, "T4", True),
            (1, "A100", False),
        ]

    def test_unknown_gpus_do_no_harm(self, tmp_path: Path) -> None:
        made = Nsys()
        del made.tables["TARGET_INFO_GPU"]
        made.kernel(0, 10, device=3)
        assert load(tmp_path, made).rows("device", "device_id", "vendor", "name") == [(3, "NVIDIA", None)]


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
