"""Small nsys exports built row by row: SQLite of the eras that differ, and the same tables as a Parquet folder.

Tables come into being with their first row, as nsys makes them. Columns are those of the era; a row may leave any out.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

PID = 4242
OTHER_PID = 4300
VM = 1
EPOCH_NS = 1_795_813_631_293_939_193
PUSH_POP, START_END, MARK, DOMAIN_CREATE, THREAD_NAME = 59, 60, 34, 75, 39

ERAS = ("2021", "2022.1", "2023.4", "2025.3", "2026.2")
"""Without version or enum tables; EXPORT_META_DATA; META_DATA_EXPORT; green contexts; graph and cluster columns."""
VERSIONS = {
    "2022.1": ("2022.1.3.3", "2.9.1"),
    "2023.4": ("2023.4.4.54", "3.6.0"),
    "2025.3": ("2025.3.2.0", "3.20.3"),
    "2026.2": ("2026.2.1.210", "3.25.0"),
}
GREEN = ("2025.3", "2026.2")
PLACE = "deviceId contextId streamId correlationId globalPid"
KERNEL_REST = (
    "launchType cacheConfig registersPerThread gridX gridY gridZ blockX blockY blockZ staticSharedMemory "
    "dynamicSharedMemory localMemoryPerThread localMemoryTotal gridId sharedMemoryExecuted graphNodeId"
)
COLUMNS = {
    "KERNEL": f"start end {PLACE} demangledName shortName mangledName {KERNEL_REST}",
    "MEMCPY": f"start end {PLACE} bytes copyKind srcKind dstKind graphNodeId",
    "MEMSET": f"start end {PLACE} value bytes graphNodeId memKind",
    "GRAPH_TRACE": f"start end {PLACE} graphId graphExecId",
    "SYNCHRONIZATION": f"start end {PLACE} syncType eventId",
    "RUNTIME": "start end eventClass globalTid correlationId nameId returnValue callchainId",
    "NVTX_EVENTS": "start end eventType rangeId color text globalTid endGlobalTid textId domainId jsonTextId jsonText",
    "OSRT_API": "start end eventClass globalTid nameId returnValue callchainId",
    "StringIds": "id value",
    "TARGET_INFO_GPU": "vmId id name busLocation totalMemory smCount uuid cuDevice computeMajor computeMinor",
    "TARGET_INFO_CUDA_DEVICE": "gpuId cudaId pid uuid",
    "TARGET_INFO_SESSION_START_TIME": "utcEpochNs utcTime localTime",
    "TARGET_INFO_SYSTEM_ENV": "globalVid devStateName name nameEnum value",
    "META_DATA_EXPORT": "name value",
    "EXPORT_META_DATA": "name value",
    "META_DATA_CAPTURE": "name value",
    "DIAGNOSTIC_EVENT": "timestamp text globalPid",
    "MPI_COLLECTIVES_EVENTS": "start end globalTid textId size",
    "MPI_RANKS": "globalPid rank",
    "ANALYSIS_DETAILS": "globalVid duration startTime stopTime",
    "CUBLAS_EVENTS": "start end eventClass globalTid nameId",
    "CUPTI_ACTIVITY_KIND_OPENACC_LAUNCH": "start end nameId globalTid eventKind",
    "GPU_METRICS": "rawTimestamp timestamp typeId metricId value",
    "TARGET_INFO_GPU_METRICS": "typeId metricId metricName",
    "NVTX_PAYLOAD_SCHEMAS": "domainId schemaId name",
}
CUPTI = ("KERNEL", "MEMCPY", "MEMSET", "GRAPH_TRACE", "SYNCHRONIZATION", "RUNTIME")
TEXT_COLUMNS = (
    "value",
    "text",
    "metricName",
    "jsonText",
    "name",
    "uuid",
    "busLocation",
    "utcTime",
    "localTime",
    "devStateName",
)


def process(pid: int = PID, vm: int = VM) -> int:
    """The serialized id of a process."""
    return vm << 48 | pid << 24


def thread(tid: int = PID, pid: int = PID, vm: int = VM) -> int:
    """The serialized id of a thread."""
    return process(pid, vm) | tid


@dataclass
class Nsys:
    """An export in the making."""

    era: str = "2025.3"
    has_session: bool = True
    tables: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    strings: dict[str, int] = field(default_factory=dict)
    correlations: int = 0

    def __post_init__(self) -> None:
        for text in ("PATH=/home/someone/bin", "SECRET_TOKEN=hunter2"):
            self.string(text)
        if self.has_session and self.era != "2021":
            self.add("TARGET_INFO_SESSION_START_TIME", utcEpochNs=EPOCH_NS, utcTime="2026-11-27T21:07:11", localTime="")
        self.add(
            "TARGET_INFO_GPU",
            vmId=VM << 48,
            id=0,
            name="NVIDIA H100",
            totalMemory=85_000_000_000,
            smCount=132,
            uuid="gpu-0",
            cuDevice=0,
            computeMajor=9,
            computeMinor=0,
        )
        if self.era in VERSIONS:
            product, schema = VERSIONS[self.era]
            table = "EXPORT_META_DATA" if self.era == "2022.1" else "META_DATA_EXPORT"
            self.add(table, name="EXPORT_PRODUCT_VERSION", value=product)
            self.add(table, name="EXPORT_SCHEMA_VERSION", value=schema)
            self.add("TARGET_INFO_SYSTEM_ENV", name="DeviceEnvironment", value="SECRET_TOKEN=hunter2")
            self.add("TARGET_INFO_SYSTEM_ENV", name="Hostname", value="node7")

    def add(self, table: str, **values: Any) -> int:
        """Add a row; returns its number."""
        rows = self.tables.setdefault(table, [])
        rows.append(values)
        return len(rows)

    def string(self, text: str) -> int:
        """The id of a string."""
        return self.strings.setdefault(text, len(self.strings) + 1)

    def call(
        self,
        start: int,
        end: int,
        name: str = "cudaLaunchKernel_v7000",
        *,
        correlation: int | None = None,
        tid: int = PID,
        pid: int = PID,
        **values: Any,
    ) -> int:
        """Add an API call; returns its correlation id."""
        if correlation is None:
            self.correlations += 1
            correlation = self.correlations
        self.add(
            "RUNTIME",
            start=start,
            end=end,
            eventClass=0,
            globalTid=thread(tid, pid),
            correlationId=correlation,
            nameId=self.string(name),
            returnValue=0,
            **values,
        )
        return correlation

    def kernel(
        self,
        start: int,
        end: int | None,
        name: str = "void gemm<(int)4>(float *)",
        *,
        correlation: int | None = None,
        pid: int = PID,
        device: int = 0,
        stream: int = 7,
        **values: Any,
    ) -> None:
        """Add a kernel."""
        given = {
            "start": start,
            "end": end,
            "deviceId": device,
            "contextId": 1,
            "streamId": stream,
            "correlationId": correlation,
            "globalPid": process(pid),
            "demangledName": self.string(name),
            "shortName": self.string(name.split("<")[0].removeprefix("void ")),
            "registersPerThread": 32,
            "gridX": 8,
            "gridY": 4,
            "gridZ": 2,
            "blockX": 128,
            "blockY": 1,
            "blockZ": 1,
            "staticSharedMemory": 1024,
            "dynamicSharedMemory": 512,
        }
        self.add("KERNEL", **{**given, **values})

    def launch(
        self,
        at: int,
        start: int,
        end: int,
        name: str = "void gemm<(int)4>(float *)",
        *,
        tid: int = PID,
        pid: int = PID,
        **values: Any,
    ) -> int:
        """Add a call of 10 ns at ``at`` and the kernel that it launched; returns the correlation id."""
        correlation = self.call(at, at + 10, tid=tid, pid=pid)
        self.kernel(start, end, name, correlation=correlation, pid=pid, **values)
        return correlation

    def copy(self, start: int, end: int, kind: int = 1, size: int = 4096, **values: Any) -> None:
        """Add a copy."""
        self.add(
            "MEMCPY",
            start=start,
            end=end,
            deviceId=0,
            contextId=1,
            streamId=7,
            globalPid=process(),
            bytes=size,
            copyKind=kind,
            **values,
        )

    def range(
        self,
        start: int,
        end: int | None,
        name: str | None = None,
        *,
        kind: int = PUSH_POP,
        tid: int = PID,
        pid: int = PID,
        registered: bool = True,
        domain: int = 0,
        **values: Any,
    ) -> None:
        """Add a range or mark; its name is a registered string unless said."""
        named: dict[str, Any] = {}
        if name is not None:
            named = {"textId": self.string(name)} if registered else {"text": name}
        given = {"start": start, "end": end, "eventType": kind, "globalTid": thread(tid, pid), "domainId": domain}
        self.add("NVTX_EVENTS", **{**given, **named, **values})

    def domain(self, number: int, name: str, *, start: int = -10_000, pid: int = PID, registered: bool = True) -> None:
        """Create an NVTX domain."""
        self.range(start, None, name, kind=DOMAIN_CREATE, pid=pid, registered=registered, domain=number)

    def columns(self, table: str) -> list[str]:
        """The columns of a table in this era, in their order."""
        names = COLUMNS[table].split()
        if table in CUPTI and table != "RUNTIME" and self.era in GREEN:
            names.insert(names.index("contextId") + 1, "greenContextId")
        if table == "KERNEL" and self.era == "2021":
            names.remove("mangledName")
        if table == "KERNEL" and self.era == "2026.2":
            names += ["graphId", "clusterX", "tensorSizeMinusOneElements"]
        return names

    def contents(self) -> dict[str, tuple[list[str], list[list[Any]]]]:
        """Columns and rows by the names of nsys."""
        held = {**self.tables, "StringIds": [{"id": number, "value": text} for text, number in self.strings.items()]}
        found = {}
        for table, rows in held.items():
            columns = self.columns(table)
            extra = [name for row in rows for name in row if name not in columns]
            columns += list(dict.fromkeys(extra))
            named = f"CUPTI_ACTIVITY_KIND_{table}" if table in CUPTI else table
            found[named] = (columns, [[row.get(name) for name in columns] for row in rows])
        return found

    def sqlite(self, path: Path) -> Path:
        """Write an SQLite export."""
        with closing(sqlite3.connect(path)) as connection:
            for table, (columns, rows) in self.contents().items():
                types = ", ".join(f'"{name}" {"TEXT" if is_text(table, name) else "INTEGER"}' for name in columns)
                connection.execute(f'CREATE TABLE "{table}" ({types})')
                marks = ", ".join("?" * len(columns))
                connection.executemany(f'INSERT INTO "{table}" VALUES ({marks})', rows)
            connection.commit()
        return path

    def parquet(self, folder: Path) -> Path:
        """Write a Parquet folder."""
        folder.mkdir(parents=True)
        for table, (columns, rows) in self.contents().items():
            arrays = {
                name: pa.array([row[place] for row in rows], pa.string() if is_text(table, name) else pa.int64())
                for place, name in enumerate(columns)
            }
            pq.write_table(pa.table(arrays), folder / f"{table}.parquet")
        return folder


def is_text(table: str, column: str) -> bool:
    return column in TEXT_COLUMNS and not (table.endswith(("MEMSET", "GPU_METRICS")) and column == "value")
