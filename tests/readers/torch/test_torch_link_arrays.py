"""Linking with arrays and linking in SQL give the same rows, in every unusual case."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from support.examples import MORE
from support.readings import Reading, read
from support.traces import Event, annotation, call, frame, kernel, launched, memcpy, op, write
from tracedb_torch.link import rows_arrays
from tracedb_torch.link.rules import LONG_NAME
from tracedb_torch.scan import native_scanner

pytestmark = pytest.mark.skipif(native_scanner.library() is None, reason="the compiled reader was not built")

TABLES = (
    *("kernel_event", "collective_call", "launch", "op", "annotation", "memory_event", "device", "ingest_issue"),
    "capture",
)
ROCM = {"schemaVersion": 1, "hip_runtime_version": 60443483, "roctracer_version": 4.1, "baseTimeNanoseconds": 10**18}
WHOLE_MICROSECONDS = {"schemaVersion": 1}
NAMES = ("cudaLaunchKernel", "cudaMemcpyAsync", "cudaStreamIsCapturing", "hipExtModuleLaunchKernel", "hipMemsetAsync")
KERNELS = ("gemm", "ncclDevKernel_AllReduce_Sum_f32", "msccl_kernel", "RCCL_generic")
SIZES = [(0, 4097, 1), (1, 9, 1), (2, 4095, 0), (3, 4096, 0), (4, 1, 0), (5, 5000, 0)]
COLLECTIVE = {
    "Collective name": "allreduce",
    "In msg nelems": 10,
    "Out msg nelems": 1 << 40,
    "In split size": "[3, 7]",
    "Out split size": "[4, 6]",
    "Rank": 1,
    "Dst Rank": 5,
    "dtype": "Float",
    "Process Group Name": "0",
    "Group size": 8,
    "Process Group Ranks": "[0, 1]",
}


def both(monkeypatch: pytest.MonkeyPatch, path: Path, is_linked: bool = True, **options: Any) -> Reading:
    """Read the file both ways and compare; ``is_linked``: whether numpy alone suffices."""
    links: list[rows_arrays.HeldLinker | None] = []
    linker = rows_arrays.linker

    def noted(*given: Any) -> rows_arrays.HeldLinker | None:
        links.append(linker(*given))
        return links[-1]

    def refused(*_: Any) -> None:
        return None

    with monkeypatch.context() as patch:
        patch.setattr(rows_arrays, "linker", noted)
        found = read(path, **options)
        patch.setattr(rows_arrays, "linker", refused)
        expected = read(path, **options)
    assert any(links) == is_linked
    for table in TABLES:
        assert _rows(found, table) == _rows(expected, table)
    kernels = found.tables.get("kernel_event", [])
    order = [(len(row["name"].encode()) >= LONG_NAME, *_device_and_time(row)) for row in kernels]
    assert not is_linked or order == sorted(order)
    return found


def _device_and_time(row: dict[str, Any]) -> tuple[bool, int, int, int]:
    return row["device_id"] is None, row["device_id"] or 0, row["start_ns"], row["event_id"]


def _rows(reading: Reading, table: str) -> list[str]:
    return sorted(repr(sorted(row.items())) for row in reading.tables.get(table, []))


CASES: dict[str, Callable[[], Sequence[Event]]] = {
    "usual": lambda: [*launched(5), annotation(0, 500, "step"), memcpy(7, correlation=4)],
    "no correlation ids": lambda: [op(0, 9), call(1), kernel(5), kernel(6)],
    "only some correlation ids": lambda: [call(1), call(2, 1, 5), kernel(5), kernel(6, correlation=5), kernel(7)],
    "no calls": lambda: [op(0, 9, external=3), kernel(5, correlation=4, External_id=3), kernel(6, External_id=9)],
    "no operators": lambda: [call(1, 1, 5), kernel(6, correlation=5), annotation(0, 9, "a")],
    "only GPU rows": lambda: [kernel(6, correlation=5), memcpy(7), kernel(6, device=3)],
    "several calls of an id": lambda: [
        *(call(3, 1, 5, "cudaGetDevice"), call(4, 1, 5, "cudaLaunchKernel"), call(2, 1, 5, "cudaFree")),
        *(call(7, 1, 6, "cudaFree"), call(6, 1, 6, "cudaGetDevice"), call(9, 1, 7), call(8, 1, 7), call(8, 1, 7)),
        *(kernel(20 + number, correlation=number) for number in (5, 6, 7, 8)),
    ],
    "several operators of an id": lambda: [
        *(op(0, 9, "a", 5), op(1, 3, "b", 5), call(1, 1, 6, external=5), kernel(9, correlation=6)),
        *(op(20, 9, "c"), op(21, 3, "d", 5), call(22, 1, 7, external=5), kernel(29, correlation=7)),
    ],
    "ids beyond 32 bits": lambda: [
        *(op(0, 9, external=1 << 40), call(1, 1, 1 << 41, external=1 << 40, tid=1 << 42)),
        *(kernel(9, correlation=1 << 41, device=1 << 33), kernel(10, correlation=5, stream=1 << 50)),
        call(3, 1, 5),
    ],
    "a call right after its operator": lambda: [
        *(op(0, 9, external=1, tid=5), op(20, 9, external=2, tid=5)),
        *(call(11, 1, 5, external=1), call(32, 1, 6, external=2), kernel(90, correlation=5), kernel(91, correlation=6)),
    ],
    "another thread": lambda: [op(0, 9, tid=1), call(1, 1, 5, tid=2), kernel(9, correlation=5)],
    "negative process": lambda: [op(0, 9, pid=-1), call(1, 1, 5, pid=-1), kernel(9, correlation=5, device=-1)],
    "said of collectives": lambda: [
        *(op(0, 50, "record_param_comms", 1, args=COLLECTIVE), op(1, 40, "nccl:all_reduce", 2), call(2, 1, 5)),
        *(kernel(60, name=KERNELS[1], correlation=5), kernel(61, name=KERNELS[1], args=COLLECTIVE | {"dtype": None})),
        *(kernel(70, name="gemm", correlation=5), kernel(71, name=KERNELS[2]), op(90, 5, args={"Group size": 1 << 40})),
    ],
    "frames and open ranges": lambda: [*launched(2), frame(0, 100, "a.py(1): f"), annotation(5, None, "open")],
    "long names": lambda: [
        kernel(5, name="é" * 2048),
        memcpy(4),
        kernel(6, name="k" * 4095),
        kernel(1, name="k" * 4096),
    ],
    "ranges on the GPU": lambda: [*launched(2), annotation(5, 9, "r", pid=0, tid=7, cat="gpu_user_annotation")],
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("header", [None, WHOLE_MICROSECONDS, ROCM], ids=["nanoseconds", "whole", "rocm"])
def test_same_rows(case: str, header: dict[str, Any] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "x.json", CASES[case](), header=header)
    both(monkeypatch, path, stacks=True)


def test_external_id_that_is_the_correlation_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events = [op(0, 9, "wrong", 5), op(20, 9, "right", 6), call(22, 1, 5), kernel(40, correlation=5, External_id=5)]
    found = both(monkeypatch, write(tmp_path / "x.json", events, header=WHOLE_MICROSECONDS))
    assert found.issues["external_id_is_correlation"] == 1
    assert found.kernels("op_id") == [1]


@pytest.mark.parametrize("is_linked", [False, True])
def test_kernels_of_long_names_come_last(is_linked: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else DuckDB would write out the names of every row group."""
    if not is_linked:
        monkeypatch.setattr(rows_arrays, "linker", lambda *_: None)
    events = [kernel(ts, name="k" * length, device=device) for ts, length, device in SIZES]
    rows = read(write(tmp_path / "x.json", events)).tables["kernel_event"]
    assert [(row["start_ns"] // 1000, len(row["name"]), row["device_id"]) for row in rows] == [
        *((2, 4095, 0), (4, 1, 0), (1, 9, 1), (3, 4096, 0), (5, 5000, 0), (0, 4097, 1)),
    ]


@pytest.mark.parametrize("is_swapped", [False, True])
def test_sizes_of_rocm(is_swapped: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = [([1000, 4, 1], [256, 3, 1]), ([0, 1, 1], [0, 1, 1])]
    if is_swapped:
        sizes += [([256, 1, 1], [1000, 2, 1])]
    events: list[Event] = [kernel(1)]
    for number, (grid, block) in enumerate(sizes):
        for correlation, name in ((2 * number + 1, "hipExtModuleLaunchKernel"), (2 * number + 2, "hipLaunchKernel")):
            events.append(call(number, 1, correlation, name))
            events.append(kernel(5, correlation=correlation, grid=grid, block=block))
    found = both(monkeypatch, write(tmp_path / "x.json", events, header=ROCM))
    assert ("grid_swapped" in found.issues) == is_swapped


def test_operators_that_cross_are_left_to_sql(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events = [op(0, 10), op(5, 10), call(6, 1, 5), kernel(9, correlation=5)]
    both(monkeypatch, write(tmp_path / "x.json", events), is_linked=False)


@pytest.mark.parametrize("events", [[op(0, 9), op(1, 2), call(1, 1, 5)], [], [annotation(0, 5, "a")]])
def test_without_gpu_rows_nothing_is_linked(
    events: list[Event], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both(monkeypatch, write(tmp_path / "x.json", events), is_linked=False)


def test_memory_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    args = {"Device Type": 1, "Device Id": 0, "Addr": 140_000_000_000_000, "Bytes": -512, "Total Allocated": 1 << 40}
    where = {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "s": "t", "pid": 1, "tid": 2}
    events = [*launched(1), {**where, "ts": 5, "args": args}, {**where, "ts": 6, "args": args | {"Addr": -1}}]
    found = both(monkeypatch, write(tmp_path / "x.json", events), memory_events=True)
    assert found.rows("memory_event", "address", "bytes") == [(140_000_000_000_000, -512), (None, -512)]


@pytest.mark.parametrize("seed", range(16 * MORE))
def test_anything(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many ids stand twice and many starts are the same; in three of four the operators of a thread nest."""
    chance = random.Random(seed)
    header = (None, WHOLE_MICROSECONDS, ROCM)[seed % 3]
    events = [event for _ in range(chance.randint(1, 12)) for event in _some(chance)]
    is_crossing = seed % 4 == 0
    if is_crossing:
        events += [op(0, 10, tid=9), op(5, 10, tid=9)]
    chance.shuffle(events)
    both(monkeypatch, write(tmp_path / "x.json", [*events, kernel(1)], header=header), not is_crossing)


def _some(chance: random.Random) -> list[Event]:
    begin, thread = 100 * chance.randrange(6) * chance.randint(1, 3), chance.randint(1, 2)
    external, correlation = partial(chance.choice, [None, *range(1, 8)]), partial(chance.choice, [None, *range(5)])
    offset, duration = chance.choice([(0, 50), (0, 20), (10, 10), (50, 0)])
    made = [
        op(begin, 50, external=external(), tid=thread, args=chance.choice([{}, COLLECTIVE])),
        op(begin + offset, duration, external=external(), tid=thread),
        call(begin + chance.choice([0, 12, 60]), 2, correlation(), chance.choice(NAMES), external=external()),
        call(begin + 12, 2, correlation(), chance.choice(NAMES), external=external(), tid=thread),
    ]
    sizes: dict[str, Any] = chance.choice([{}, {"grid": [8, 1, 1], "block": [chance.choice([64, 4096]), 1, 1]}])
    if (own := external()) is not None:
        sizes = {**sizes, "External id": own}
    made.append(kernel(begin + 40, 5, chance.choice(KERNELS), correlation=correlation(), args=sizes))
    made.append(memcpy(begin + 40, chance.randint(0, 3), device=chance.randint(0, 1), correlation=correlation()))
    return made
