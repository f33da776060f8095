"""A database in memory with the views installed; tests put rows in and look at rows out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import duckdb
import pytest

from tracedb import schema, views
from tracedb.hooks import By, Edits, resolve

GEMM = "nvjet_sm90_tst_128x256_64x4_2x1_v_bz_TNT"
NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int)"

Row = tuple[Any, ...]


class Trace:
    """Rows by table, in words; every event gets the next number."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.connection = connection
        self._number = 0

    def add(self, table: str, **values: Any) -> None:
        names = ", ".join(values)
        marks = ", ".join("?" for _ in values)
        self.connection.execute(f"INSERT INTO main.{table} ({names}) VALUES ({marks})", list(values.values()))

    def capture(self, capture_id: int = 1, rank: int | None = None, vendor: str = "NVIDIA", device_id: int = 0) -> None:
        self.add("capture", capture_id=capture_id, source="torch", rank=rank)
        self.add("device", capture_id=capture_id, device_id=device_id, vendor=vendor)

    def event(self, name: str, start: int, end: int, kind: str = "kernel", **values: Any) -> int:
        self._number += 1
        given = {"capture_id": 1, "device_id": 0, "stream_id": 7, "event_id": self._number, **values}
        self.add("kernel_event", name=name, kind=kind, start_ns=start, duration_ns=end - start, **given)
        return self._number

    def range(self, number: int, name: str, start: int, end: int | None, **values: Any) -> None:
        given = {"capture_id": 1, "style": "user", "process_id": 1, "thread_id": 10, "depth": 0, **values}
        duration = None if end is None else end - start
        self.add("annotation", annotation_id=number, name=name, start_ns=start, duration_ns=duration, **given)

    def inside(self, annotation: int, *events: int, rule: str = "thread", capture_id: int = 1) -> None:
        for event in events:
            self.add("annotation_kernel", capture_id=capture_id, annotation_id=annotation, event_id=event, rule=rule)

    def launch(self, number: int = 1, capture_id: int = 1, **values: Any) -> None:
        given = {"name": "cudaLaunchKernel", "process_id": 1, "thread_id": 10, "start_ns": 0, "duration_ns": 5, **values}
        self.add("launch", capture_id=capture_id, launch_id=number, **given)

    def rows(self, columns: str, view: str, order: str = "ALL") -> list[Row]:
        """Return the chosen columns of a view, ordered."""
        return self.connection.execute(f"SELECT {columns} FROM v1.{view} ORDER BY {order}").fetchall()

    def rows_by(self, columns: str, view: str, by: str, where: Sequence[str] = ()) -> list[Row]:
        """Return columns of a view grouped and filtered through its hooks, as a report does."""
        edits = Edits(by=(By(by, lambda alias: f"{alias}.{by}"),), filters={"e": where, "k": where, "r": where})
        text = resolve(views.find(view).select, edits)
        return self.connection.execute(f"SELECT {columns} FROM ({text}) ORDER BY ALL").fetchall()


@pytest.fixture
def trace() -> Iterator[Trace]:
    with duckdb.connect(":memory:") as connection:
        schema.apply(connection, "test")
        views.install(connection)
        yield Trace(connection)
