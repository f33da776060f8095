"""A small database from inline rows, for tests of the command line and of reports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb

from support.loading import NUMBERS, empty_database
from support.readings import instance
from support.rows import insert
from tracedb.derive import critical_segment
from tracedb.report import registry
from tracedb.storage.connection import quoted

GEMM = "nvjet_sm90_tst_128x256_64x4_2x1_v_bz_TNT"
NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int)"

NEEDED = (
    "all_to_alls",
    "attention",
    "counters",
    "graphs",
    "matches",
    "measures",
    "memory",
    "messages",
    "modules",
    "pipelines",
    "predictions",
    "replay",
    "scenarios",
    "stacks",
)
ANSWERED = [item.name for item in registry.every() if item.needs not in NEEDED]
"""The reports that the database of ``two_ranks`` answers: no range is named after a part of attention, no counter was
read, no configuration has two ranks (test_rank_reports.py), no time was measured outside of a trace, no allocator event
and no Python frame was loaded, no graph was launched, and no operator was predicted, replayed or timed
under a change."""


class Tiny:
    """Rows given one by one; ``save`` makes the file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.write_bytes(empty_database())
        self._connection = instance().cursor()  # starting an engine takes as long as all the rest
        self._name = f"tiny_{next(NUMBERS)}"
        self._connection.execute(f"ATTACH {quoted(str(path))} AS {self._name}")
        self._connection.execute(f"USE {self._name}")
        self._connection.execute("BEGIN")
        self._given: dict[tuple[str, tuple[str, ...]], list[tuple[Any, ...]]] = {}
        self.captures = 0
        self.events = 0

    def add(self, table: str, **values: Any) -> None:
        self._given.setdefault((table, tuple(values)), []).append(tuple(values.values()))

    @property
    def connection(self) -> duckdb.DuckDBPyConnection:
        """The database with what was given so far."""
        for (table, names), given in self._given.items():
            insert(self._connection, table, " ".join(names), *given)
        self._given.clear()
        return self._connection

    def capture(self, rank: int | None = None, labels: dict[str, str] | None = None, **values: Any) -> int:
        self.captures += 1
        path = values.pop("path", f"/traces/capture{self.captures}.json")
        given = {"source": "torch", "status": "complete", **values}
        self.add("capture", capture_id=self.captures, rank=rank, labels=labels or {}, path=path, **given)
        self.add("device", capture_id=self.captures, device_id=0, vendor="NVIDIA")
        return self.captures

    def kernel(self, name: str, start: int, duration: int, **values: Any) -> int:
        self.events += 1
        given = {"capture_id": self.captures, "kind": "kernel", "device_id": 0, "stream_id": 7, **values}
        self.add("kernel_event", event_id=self.events, name=name, start_ns=start, duration_ns=duration, **given)
        return self.events

    def range(self, number: int, name: str, start: int, end: int, events: tuple[int, ...] = (), **values: Any) -> None:
        """Add a range of the current capture, innermost around the events by rules thread and process."""
        rules = values.pop("rules", ("thread", "process"))
        given = {
            "annotation_id": number,
            "name": name,
            "style": "user",
            "process_id": 1,
            "thread_id": 1,
            "start_ns": start,
            "duration_ns": end - start,
            "depth": 0 if values.get("parent_id") is None else 1,
            **values,
        }
        self.add("annotation", capture_id=self.captures, **given)
        for rule in rules:
            for event in events:
                self.add(
                    "annotation_kernel",
                    capture_id=self.captures,
                    annotation_id=number,
                    event_id=event,
                    rule=rule,
                )

    def save(self) -> Path:
        self.connection.execute("COMMIT")
        self.connection.execute("USE memory")
        self.connection.execute(f"DETACH {self._name}")
        self.connection.close()
        return self.path


def two_ranks(path: Path) -> Path:
    """Two captures: rank 0 with threads 256, rank 1 with threads 1024; two steps each, GEMMs alone and overlapped.

    Paths of the steps are derived as at load.
    """
    tiny = Tiny(path)
    for rank, threads in enumerate(("256", "1024")):
        tiny.capture(rank, {"threads": threads, "channels": "8", "sweep": "a"})
        number = tiny.captures
        tiny.add(
            "op",
            capture_id=number,
            op_id=1,
            name="aten::mm",
            start_ns=0,
            duration_ns=10,
            input_dims="[[8, 4], [4, 2]]",
        )
        tiny.add("launch", capture_id=number, launch_id=1, name="cudaLaunchKernel", start_ns=0, duration_ns=5)
        slow = 1_000 * (rank + 1)
        tiny.kernel("Memcpy HtoD", 200, 300, kind="memcpy", bytes=64)
        first = [tiny.kernel(GEMM, 0, 1_000 + slow, op_id=1, launch_id=1), tiny.kernel(ADD, 5_000, 500)]
        second = [
            tiny.kernel(GEMM, 10_000, 2_000 + slow, op_id=1),
            tiny.kernel(NCCL, 10_500, 4_000, stream_id=9),
            tiny.kernel(GEMM, 20_000, 1_000, op_id=1),
        ]
        given = {"operator": "mm", "pass": "fwd", "shape": {"b": 8}, "statistic": "mean", "time_ns": 1500}
        tiny.add("operator_sample", capture_id=number, sample_id=1, gpu="H100", **given)
        tiny.range(1, "ProfilerStep#5", 0, 8_000)
        tiny.range(2, "forward", 0, 7_000, tuple(first), parent_id=1)
        tiny.range(3, "ProfilerStep#6", 9_000, 30_000, tuple(second))
        tiny.range(4, "comm|allreduce|elements=64", 40_000, 41_000)
    critical_segment.renew(tiny.connection)
    return tiny.save()
