"""Small rocpd databases of schema 3, built by hand from the list of its tables and columns."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

OWNER = "nid INTEGER, pid INTEGER"
TABLES = {
    "metadata": "tag TEXT, value TEXT",
    "string": "guid TEXT, string TEXT",
    "info_node": "guid TEXT, hash BIGINT, machine_id TEXT, system_name TEXT, hostname TEXT",
    "info_process": 'guid TEXT, nid INTEGER, ppid INTEGER, pid INTEGER, init BIGINT, start BIGINT, "end" BIGINT, '
    "command TEXT, environment JSONB",
    "info_thread": f"guid TEXT, {OWNER}, tid INTEGER, name TEXT",
    "info_agent": f"guid TEXT, {OWNER}, type TEXT, absolute_index INTEGER, logical_index INTEGER, type_index INTEGER, "
    "name TEXT, product_name TEXT, extdata JSONB",
    "info_kernel_symbol": f"guid TEXT, {OWNER}, code_object_id INTEGER, kernel_name TEXT, display_name TEXT, "
    "group_segment_size INTEGER, arch_vgpr_count INTEGER",
    "info_pmc": f"guid TEXT, {OWNER}, agent_id INTEGER, instance_id INTEGER, name TEXT, symbol TEXT",
    "track": f"guid TEXT, {OWNER}, tid INTEGER, name_id INTEGER",
    "event": "guid TEXT, category_id INTEGER, stack_id INTEGER, parent_stack_id INTEGER, correlation_id INTEGER, "
    "extdata JSONB",
    "pmc_event": "guid TEXT, event_id INTEGER, pmc_id INTEGER, value REAL",
    "region": f'guid TEXT, {OWNER}, tid INTEGER, start BIGINT, "end" BIGINT, name_id INTEGER, event_id INTEGER',
    "sample": "guid TEXT, track_id INTEGER, timestamp BIGINT, event_id INTEGER",
    "kernel_dispatch": f"guid TEXT, {OWNER}, tid INTEGER, agent_id INTEGER, kernel_id INTEGER, dispatch_id INTEGER, "
    'queue_id INTEGER, stream_id INTEGER, start BIGINT, "end" BIGINT, private_segment_size INTEGER, '
    "group_segment_size INTEGER, workgroup_size_x INTEGER, workgroup_size_y INTEGER, workgroup_size_z INTEGER, "
    "grid_size_x INTEGER, grid_size_y INTEGER, grid_size_z INTEGER, event_id INTEGER",
    "memory_copy": f'guid TEXT, {OWNER}, tid INTEGER, start BIGINT, "end" BIGINT, name_id INTEGER, '
    "dst_agent_id INTEGER, src_agent_id INTEGER, size INTEGER, queue_id INTEGER, stream_id INTEGER, event_id INTEGER",
    "memory_allocate": f'guid TEXT, {OWNER}, tid INTEGER, type TEXT, start BIGINT, "end" BIGINT, size INTEGER',
}
KERNELS = ("void k<int, float>(float*)", "Cijk_Alik_Bljk_SB_MT64x64")
AGENTS = (("CPU", 0, 0), ("GPU", 5, 0), ("GPU", 4, 1))
"""Type, node id and place among those of the type; agents 1 to 3."""
PROCESS, THREAD = 1, 1


@dataclass
class Database:
    """What one process left: its tables have the suffix of its guid."""

    guid: str = "00003fd6-c565-7a04"
    pid: int = 17
    version: str = "3"
    environment: dict[str, str] = field(default_factory=dict)
    rows: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    strings: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        for tag, value in (("schema_version", self.version), ("guid", self.guid)):
            self.add("metadata", tag=tag, value=value)
        self.add("info_node", hash=1, machine_id="secret", hostname="host-a")
        self.add("info_process", nid=1, pid=self.pid, command="secret", environment=json.dumps(self.environment))
        self.add("info_thread", nid=1, pid=PROCESS, tid=77)
        for kind, node, place in AGENTS:
            more = {"cu_count": 304 if kind == "GPU" else 64, "max_engine_clk_fcompute": 2100}
            self.add("info_agent", nid=1, pid=PROCESS, type=kind, absolute_index=node, logical_index=node,
                     type_index=place, name="gfx942", product_name="MI300X", extdata=json.dumps(more))  # fmt: skip
        for name in KERNELS:
            self.add("info_kernel_symbol", nid=1, pid=PROCESS, kernel_name="_Zk.kd", display_name=name,
                     group_segment_size=512, arch_vgpr_count=24)  # fmt: skip
        for name, instance in (("SQ_WAVES", 0), ("SQ_WAVES", 1), ("GRBM_COUNT", 0)):
            self.add("info_pmc", nid=1, pid=PROCESS, agent_id=2, instance_id=instance, name=name, symbol=name)

    def add(self, table: str, **values: Any) -> int:
        """Add a row; returns its id."""
        rows = self.rows.setdefault(table, [])
        rows.append({"id": len(rows) + 1, **({} if table == "metadata" else {"guid": self.guid}), **values})
        return len(rows)

    def string(self, text: str) -> int:
        """Return the id of a string."""
        if text not in self.strings:
            self.strings.append(text)
            self.add("string", string=text)
        return self.strings.index(text) + 1

    def event(self, category: str, stack: int = 0, **extra: Any) -> int:
        """Add an event; returns its id."""
        return self.add("event", category_id=self.string(category), stack_id=stack, parent_stack_id=0,
                        correlation_id=0, extdata=json.dumps(extra))  # fmt: skip

    def kernel(self, start: int, end: int, kernel: int = 1, stack: int = 0, agent: int = 2, **values: Any) -> int:
        """Add a dispatch; returns its event's id."""
        event = self.event("KERNEL_DISPATCH", stack)
        number = len(self.rows.get("kernel_dispatch", [])) + 1
        given = {"dispatch_id": number, "queue_id": 1, "stream_id": 3, "group_segment_size": 1024,
                 "workgroup_size_x": 256, "workgroup_size_y": 1, "workgroup_size_z": 1,
                 "grid_size_x": 2048, "grid_size_y": 1, "grid_size_z": 1, **values}  # fmt: skip
        self.add("kernel_dispatch", nid=1, pid=PROCESS, tid=THREAD, agent_id=agent, kernel_id=kernel, start=start,
                 end=end, event_id=event, **given)  # fmt: skip
        return event

    def count(self, event: int, pmc: int, value: float) -> None:
        """Add a counter's value to a dispatch."""
        self.add("pmc_event", event_id=event, pmc_id=pmc, value=value)

    def region(self, name: str, start: int, end: int, category: str, stack: int = 0, **extra: Any) -> None:
        """Add a region."""
        self.add("region", nid=1, pid=PROCESS, tid=THREAD, start=start, end=end, name_id=self.string(name),
                 event_id=self.event(category, stack, **extra))  # fmt: skip

    def mark(self, text: str, at: int) -> None:
        """Add a mark, which is a sample."""
        track = self.add("track", nid=1, pid=PROCESS, tid=THREAD)
        event = self.event("MARKER_CORE_RANGE_API", message=text)
        self.add("sample", track_id=track, timestamp=at, event_id=event)

    def copy(self, name: str, start: int, end: int, source: int, target: int, size: int, stack: int = 0) -> None:
        """Add a copy."""
        self.add("memory_copy", nid=1, pid=PROCESS, tid=THREAD, start=start, end=end, name_id=self.string(name),
                 dst_agent_id=target, src_agent_id=source, size=size, queue_id=2, stream_id=0,
                 event_id=self.event("MEMORY_COPY", stack))  # fmt: skip


def small(**values: Any) -> Database:
    """Two kernels out of order, their calls, a range in a range, a mark, a copy, allocations."""
    made = Database(**values)
    made.kernel(2_000, 2_700, 2, stack=2, agent=3)
    made.kernel(1_000, 1_500, stack=1)
    made.region("hipLaunchKernel", 900, 950, "HIP_RUNTIME_API_EXT", 1)
    made.region("hipLaunchKernel", 960, 990, "HIP_RUNTIME_API_EXT", 2)
    made.region("roctxThreadRangeA", 800, 1_900, "MARKER_CORE_RANGE_API", message='forward, "quoted"')
    made.region("roctxThreadRangeA", 880, 955, "MARKER_CORE_RANGE_API", message="inner")
    made.region("roctxProcessRangeA", 700, 5_000, "MARKER_CORE_RANGE_API", message="whole")
    made.region("roctxProfilerPause", 5_100, 5_200, "MARKER_CONTROL_API")
    made.region("KFD_PAGE_FAULT", 5_300, 5_400, "KFD_PAGE_FAULT")
    made.mark("here", 970)
    made.copy("MEMORY_COPY_HOST_TO_DEVICE", 3_000, 3_500, 1, 3, 4_096, stack=3)
    made.add("memory_allocate", nid=1, pid=PROCESS, tid=THREAD, type="ALLOC", start=1, end=2, size=64)
    return made


def save(
    path: Path,
    *databases: Database,
    suffix: bool = True,
    views: bool = True,
    without: Iterable[str] = (),
    replay: bool = False,
) -> Path:
    """Write the databases into one file, as the tool merges them; ``replay``: dispatches say their pass."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        for database in databases:
            ending = f"_{database.guid.replace('-', '_')}" if suffix else ""
            for table, columns in TABLES.items():
                if table in without:
                    continue
                if replay and table == "kernel_dispatch":
                    columns = f"{columns}, replay_pass INTEGER"
                connection.execute(f'CREATE TABLE "rocpd_{table}{ending}" (id INTEGER PRIMARY KEY, {columns})')
                for row in database.rows.get(table, []):
                    names = ", ".join(f'"{name}"' for name in row)
                    marks = ", ".join("?" * len(row))
                    connection.execute(
                        f'INSERT INTO "rocpd_{table}{ending}" ({names}) VALUES ({marks})', list(row.values())
                    )
        if views and suffix:
            for table in TABLES:
                parts = [f"rocpd_{table}_{database.guid.replace('-', '_')}" for database in databases]
                union = " UNION ALL ".join(f'SELECT * FROM "{name}"' for name in parts)
                connection.execute(f'CREATE VIEW "rocpd_{table}" AS {union}')
        connection.commit()
    return path
