"""How torch-profiler traces of every version and vendor are read."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pytest

from support.readings import Reading, read
from support.traces import (
    HEADER,
    MAIN_THREAD,
    PROCESS,
    Event,
    Raw,
    bare_list,
    call,
    document,
    frame,
    kernel,
    launched,
    memcpy,
    op,
    window_end,
    write,
)

NO_BASE = {key: value for key, value in HEADER.items() if key != "baseTimeNanoseconds"}


START = 1623143089861333  # µs since 1970


def of_2021() -> list[Event]:
    """An operator, its launch and its kernel as Kineto wrote them in 2020 and 2021, with a step and a copy."""
    gpu = {"device": 0, "context": 1, "stream": 7, "correlation": 11, "external id": 3}
    return [
        {
            "ph": "X",
            "cat": "Operator",
            "name": "ProfilerStep#4",
            "pid": 9,
            "tid": 9,
            "ts": START,
            "dur": 90,
            "args": {},
        },
        op(
            START + 1,
            20,
            "aten::linear",
            2,
            pid=9,
            tid="9",
            cat="Operator",
            args={"Input dims": [[8, 4], []], "Input type": ["float", ""]},
        ),
        op(START + 2, 10, "aten::mm", 3, pid=9, tid="9", cat="Operator", args={"Input dims": [[8, 4]]}),
        {
            **call(START + 3, 4, 11, pid=9, tid="9", cat="Runtime"),
            "args": {"cbid": 211, "correlation": 11, "external id": 3, "external ts": START + 2},
        },
        {
            **kernel(START + 30, 5, "sgemm", cat="Kernel"),
            "tid": "stream 7",
            "args": {
                **gpu,
                "queued": 0,
                "registers per thread": 128,
                "shared memory": 16384,
                "grid": [4, 2, 1],
                "block": [64, 1, 1],
            },
        },
        {**memcpy(START + 40, 2, bytes=4096), "cat": "Memcpy", "tid": "stream 7"},
        {**kernel(START + 45, 1, "Memset (Device)", bytes=64), "cat": "Memset", "tid": "stream 7"},
        {"ph": "s", "id": 11, "pid": 9, "tid": 9, "ts": START + 3, "cat": "async", "name": "launch"},
        {"ph": "f", "id": 11, "pid": 0, "tid": "stream 7", "ts": START + 30, "cat": "async", "name": "launch"},
        {
            "ph": "X",
            "cat": "Trace",
            "name": "PyTorch Profiler (0)",
            "pid": "Traces",
            "tid": "Trace",
            "ts": START,
            "dur": 99,
        },
        {"name": "process_name", "ph": "M", "ts": START, "pid": 9, "tid": 0, "args": {"name": "python"}},
        {
            "name": "[memory]",
            "ph": "i",
            "s": "t",
            "pid": 9,
            "tid": 9,
            "ts": START + 2,
            "args": {"Bytes": 64, "Addr": 1},
        },
        {"name": "Record Window End", "ph": "i", "s": "g", "pid": "", "tid": "", "ts": START + 99},
    ]


class TestEras:
    @pytest.mark.parametrize("is_list", [True, False])
    def test_2020_and_2021(self, tmp_path: Path, is_list: bool) -> None:
        content = bare_list(of_2021()) if is_list else document(of_2021(), header={"schemaVersion": 1})
        found = read(write(tmp_path / "x.json", content))
        columns = (
            "kind",
            "name",
            "start_ns",
            "duration_ns",
            "device_id",
            "stream_id",
            "launch_id",
            "op_id",
            "bytes",
            "copy_kind",
        )
        assert found.kernels(*columns) == [
            ("kernel", "sgemm", (START + 30) * 1000, 5_000, 0, 7, 3, 2, None, None),
            ("memcpy", "Memcpy HtoD (Pageable -> Device)", (START + 40) * 1000, 2_000, 0, 7, None, None, 4096, "HtoD"),
            ("memset", "Memset (Device)", (START + 45) * 1000, 1_000, 0, 7, None, None, 64, None),
        ]
        sizes = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "registers_per_thread", "shared_bytes")
        assert found.kernels(*sizes)[0] == (4, 2, 1, 64, 1, 1, 128, 16384)
        dims = [("aten::linear", None, "[[8, 4], []]", '["float", ""]'), ("aten::mm", 1, "[[8, 4]]", None)]
        assert found.rows("op", "name", "parent_op_id", "input_dims", "input_types") == dims
        assert found.rows("annotation", "name", "style", "thread_id") == [("ProfilerStep#4", "user", 9)]
        assert found.rows("launch", "process_id", "thread_id") == [(9, 9)]
        assert found.capture["clock_zero_unix_ns"] == 0
        assert found.capture["status"] == "complete"
        left = {"flow_events": 2, "profiler_spans": 1, "metadata_events": 1, "memory_events": 1, "instant_events": 1}
        assert found.issues == left

    @staticmethod
    def of_2023() -> list[Event]:
        """Whole microseconds; the External id is the correlation id, and happens to be that of other operators."""
        return [
            op(START, 50, "aten::linear", 11),
            op(START + 2, 20, "aten::addmm", 12),
            call(START + 5, 4, 12, external=12),
            op(START + 60, 20, "aten::relu", 13),
            call(START + 65, 16, 13, external=13),  # ends a microsecond after its operator: both were cut down
            call(START + 90, 2, 11, external=11),
            kernel(START + 100, 0, "gemm", correlation=12, External_id=12),
            kernel(START + 110, 3, "relu", correlation=13, External_id=13),
            kernel(START + 120, 3, "alone", correlation=11, External_id=11),
        ]

    def test_2022_to_2024_whole_microseconds(self, tmp_path: Path) -> None:
        found = read(write(tmp_path / "x.json", self.of_2023(), header=NO_BASE))
        names = dict(found.rows("op", "op_id", "name"))
        assert [(name, names.get(op)) for name, op in found.kernels("name", "op_id")] == [
            ("gemm", "aten::addmm"),
            ("relu", "aten::relu"),
            ("alone", None),
        ]
        assert found.rows("op", "name", "parent_op_id") == [
            ("aten::linear", None),
            ("aten::addmm", 0),
            ("aten::relu", None),
        ]
        assert found.issues["external_id_is_correlation"] == 3
        assert found.status == "complete"

    def test_2024_absolute_with_fractions(self, tmp_path: Path) -> None:
        events = [
            op(Raw("1712345678901234.567"), Raw("30.001"), "aten::mm", 5),
            call(Raw("1712345678901240.001"), Raw("4.5"), 77, external=5),
            kernel(Raw("1712345678901299.999"), Raw("0.384"), correlation=77, External_id=5),
        ]
        found = read(write(tmp_path / "x.json", events, header=NO_BASE))
        assert found.kernels("start_ns", "duration_ns", "launch_id", "op_id") == [(1712345678901299999, 384, 1, 0)]
        assert found.rows("launch", "start_ns", "duration_ns") == [(1712345678901240001, 4500)]
        assert found.rows("op", "start_ns", "duration_ns") == [(1712345678901234567, 30001)]

    @pytest.mark.parametrize("before", [True, False])
    def test_relative_to_a_base(self, tmp_path: Path, before: bool) -> None:
        around: dict[str, Any] = (
            {"header": HEADER} if before else {"header": NO_BASE, "after": {"baseTimeNanoseconds": 1759 * 10**15}}
        )
        found = read(write(tmp_path / "x.json", launched(2), **around))
        assert found.capture["clock_zero_unix_ns"] == 1759 * 10**15
        assert found.kernels("start_ns", "launch_id", "op_id") == [(50_000, 1, 0), (150_000, 4, 3)]

    def test_whole_microseconds_with_a_base_are_of_today(self, tmp_path: Path) -> None:
        """Whole numbers alone do not make an External id a correlation id."""
        events = [
            op(0, 9, "outer", 12),
            op(20, 9, "inner", 7),
            call(21, 2, 12, external=12),
            kernel(40, 1, correlation=12, External_id=12),
        ]
        found = read(write(tmp_path / "x.json", events))
        assert "external_id_is_correlation" not in found.issues


class TestVendors:
    ROCM: ClassVar = {"schemaVersion": 1, "hip_runtime_version": 60443483, "roctracer_version": 4.1}
    CARD: ClassVar = {
        "id": 0,
        "name": "AMD Instinct MI300X",
        "totalGlobalMem": 206141652992,
        "computeMajor": 9,
        "computeMinor": 4,
        "warpSize": 64,
        "numSms": 304,
    }

    @staticmethod
    def launch_of(name: str, grid: list[int], block: list[int]) -> list[Event]:
        return [call(1, 1, 5, name), kernel(5, 1, correlation=5, grid=grid, block=block)]

    def sizes(self, folder: Path, events: list[Event], header: dict[str, Any]) -> list[tuple[int, ...]]:
        found = read(write(folder / "x.json", events, header=header))
        return found.kernels("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")

    def test_grid_in_blocks(self, tmp_path: Path) -> None:
        events = self.launch_of("hipLaunchKernel", [8, 2, 1], [256, 1, 1])
        assert self.sizes(tmp_path, events, self.ROCM) == [(8, 2, 1, 256, 1, 1)]

    def test_grid_in_work_items(self, tmp_path: Path) -> None:
        events = self.launch_of("hipExtModuleLaunchKernel", [2048, 4, 1], [256, 4, 1])
        assert self.sizes(tmp_path, events, self.ROCM) == [(8, 1, 1, 256, 4, 1)]
        assert self.sizes(tmp_path, events, HEADER) == [(2048, 4, 1, 256, 4, 1)]

    def test_grid_and_block_swapped(self, tmp_path: Path) -> None:
        """ROCm on MI350: grid is the workgroup's size, block the global one."""
        events = [
            *self.launch_of("hipLaunchKernel", [256, 1, 1], [65536, 2, 1]),
            kernel(9, 1, grid=[512, 1, 1], block=[512, 1, 1]),
        ]
        assert self.sizes(tmp_path, events, self.ROCM) == [(256, 2, 1, 256, 1, 1), (1, 1, 1, 512, 1, 1)]

    def test_partial_blocks_and_missing_sizes(self, tmp_path: Path) -> None:
        events = [*self.launch_of("hipExtModuleLaunchKernel", [1000, 1, 1], [256, 1, 1]), kernel(9)]
        assert self.sizes(tmp_path, events, self.ROCM) == [(4, 1, 1, 256, 1, 1), (None,) * 6]

    def test_cards(self, tmp_path: Path) -> None:
        columns = ("device_id", "vendor", "name", "sm_count", "memory_bytes", "arch", "is_used")
        found = read(write(tmp_path / "x.json", [kernel(1)]))
        assert found.rows("device", *columns) == [
            (0, "NVIDIA", "NVIDIA H100 80GB HBM3", 132, 84942979072, "sm_90", True)
        ]
        cards = [self.CARD, {**self.CARD, "id": 1}]
        found = read(write(tmp_path / "x.json", [kernel(1, device=1)], header={**self.ROCM, "deviceProperties": cards}))
        rows = [(number, "AMD", "AMD Instinct MI300X", 304, 206141652992, "gfx94x", number == 1) for number in (0, 1)]
        assert found.rows("device", *columns) == rows

    def test_physical_number_of_the_only_card(self, tmp_path: Path) -> None:
        """ROCm rows bear the number of the physical device, the list that of the visible one."""
        found = read(
            write(tmp_path / "x.json", [kernel(1, device=6)], header={**self.ROCM, "deviceProperties": [self.CARD]})
        )
        assert found.rows("device", "device_id", "name", "is_used") == [(6, "AMD Instinct MI300X", True)]
        assert found.issues["device_renumbered"] == 1


class TestOptions:
    EVENTS = (
        *launched(2),
        frame(1, 80, "train.py(10): step"),
        frame(2, 5, "nn.Module: Linear_0"),
        {
            "ph": "i",
            "cat": "cpu_instant_event",
            "s": "t",
            "name": "[memory]",
            "pid": PROCESS,
            "tid": MAIN_THREAD,
            "ts": 3.5,
            "args": {
                "Total Reserved": 900,
                "Total Allocated": 512,
                "Bytes": -512,
                "Addr": 2**47 + 1,
                "Device Id": 0,
                "Device Type": 1,
            },
        },
        window_end(),
    )

    def reading(self, folder: Path, **options: bool) -> Reading:
        return read(write(folder / "x.json", list(self.EVENTS)), **options)

    def test_left_aside(self, tmp_path: Path) -> None:
        found = self.reading(tmp_path, stacks=False, memory_events=False)
        assert found.issues == {"python_functions": 2, "memory_events": 1, "instant_events": 1}
        assert (found.rows("frame", "name"), found.rows("memory_event", "bytes")) == ([], [])
        assert (found.capture["events_read"], found.capture["events_skipped"]) == (10, 4)

    def test_python_stacks_by_default(self, tmp_path: Path) -> None:
        found = self.reading(tmp_path)
        rows = [
            ("train.py(10): step", "function", 1_000, 80_000),
            ("nn.Module: Linear_0", "module", 2_000, 5_000),
        ]
        assert found.rows("frame", "name", "kind", "start_ns", "duration_ns") == rows
        assert found.issues == {"instant_events": 1}

    def test_memory_events_by_default(self, tmp_path: Path) -> None:
        found = self.reading(tmp_path, stacks=False)
        columns = (
            "device_type",
            "device_id",
            "address",
            "bytes",
            "total_allocated_bytes",
            "total_reserved_bytes",
            "start_ns",
        )
        assert found.rows("memory_event", *columns) == [(1, 0, 2**47 + 1, -512, 512, 900, 3_500)]
        assert found.issues == {"python_functions": 2, "instant_events": 1}

    def test_both(self, tmp_path: Path) -> None:
        found = self.reading(tmp_path)
        assert (found.capture["rows_written"], found.capture["events_skipped"]) == (9, 1)
