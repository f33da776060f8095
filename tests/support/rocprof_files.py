"""Small CSV sets as rocprofv3 of every era writes them, built by hand."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


def _names(text: str) -> list[str]:
    return text.split()


TIMES = ["Start_Timestamp", "End_Timestamp"]
GRID = _names("Workgroup_Size_X Workgroup_Size_Y Workgroup_Size_Z Grid_Size_X Grid_Size_Y Grid_Size_Z")
NAMED = ["Kernel_Id", "Kernel_Name", "Correlation_Id"]
SEGMENTS = ["Private_Segment_Size", "Group_Segment_Size"]
SIZES = _names("LDS_Block_Size Scratch_Size VGPR_Count Accum_VGPR_Count SGPR_Count")
TITLED = [name.title() for name in SIZES]
LANES = ["Queue_Id", "Stream_Id", "Thread_Id", "Dispatch_Id"]
ERAS = {
    "6.0": ["Kind", "Agent_Id", "Queue_Id", *NAMED, *TIMES, *SEGMENTS, *GRID],
    "6.2": ["Kind", "Agent_Id", "Queue_Id", "Thread_Id", "Dispatch_Id", *NAMED, *TIMES, *SEGMENTS, *GRID],
    "7.0": ["Kind", "Agent_Id", *LANES, *NAMED, *TIMES, *SIZES, *GRID],
    "rocpd": ["Guid", "Kind", "Agent_Id", *LANES, *NAMED, *TIMES, *TITLED, *GRID],
    "later": [
        *("Guid", "Kind", "Agent_Id", *LANES[:2], "Graph_Exec_Id", "Graph_Node_Id", *LANES[2:]),
        *(*NAMED, *TIMES, "Duration", *TITLED, *GRID),
    ],
}
"""Headers of kernel_trace by era."""
AGENTS = {"6.0": 139690710949888, "6.2": 4, "7.0": "Agent 4", "rocpd": "Agent 4", "later": "GPU 0"}
COUNTERS = [
    *_names("Correlation_Id Dispatch_Id Agent_Id Queue_Id Process_Id Thread_Id Grid_Size Kernel_Id Kernel_Name"),
    *("Workgroup_Size", *SIZES, "Counter_Name", "Counter_Value", *TIMES),
]
CALLS = [*_names("Domain Function Process_Id Thread_Id Correlation_Id"), *TIMES]
COPIES = [*_names("Kind Direction Stream_Id Source_Agent_Id Destination_Agent_Id Correlation_Id"), *TIMES]
STATS = _names("Name Calls TotalDurationNs AverageNs Percentage MinNs MaxNs StdDev")
AGENT_INFO = [
    *_names("Node_Id Logical_Node_Id Agent_Type Cu_Count Max_Engine_Clk_Fcompute Local_Mem_Size"),
    *("Name", "Vendor_Name", "Product_Name"),
]
GUID = "00003fd6-c565-7a04-8c9a-2f5a7a5e9d10"

Value = str | int | float


def direct(header: Sequence[str], rows: Iterable[Sequence[Value]]) -> str:
    """Write as rocprofv3 itself does: quotes round every text, and none of those inside escaped."""

    def quoted(value: Value) -> str:
        return f'"{value}"' if isinstance(value, str) else str(value)

    return "".join(",".join(map(quoted, row)) + "\n" for row in (header, *rows))


def proper(quoting: Any = csv.QUOTE_MINIMAL, end: str = "\n") -> Callable[..., str]:
    """Return a writer that escapes as RFC 4180 wants it."""

    def write(header: Sequence[str], rows: Iterable[Sequence[Value]]) -> str:
        text = io.StringIO()
        csv.writer(text, quoting=quoting, lineterminator=end).writerows([header, *rows])
        return text.getvalue()

    return write


WRITERS: dict[str, Callable[..., str]] = {
    "direct": direct,
    "minimal": proper(),
    "all quoted": proper(csv.QUOTE_ALL),
    "windows": proper(csv.QUOTE_NONNUMERIC, "\r\n"),
}


def kernel(name: str, start: int, end: int, **values: Value) -> dict[str, Value]:
    """A dispatch; the rest of its columns have usual values."""
    return {
        "Kind": "KERNEL_DISPATCH",
        "Guid": GUID,
        "Queue_Id": 1,
        "Stream_Id": 2,
        "Thread_Id": 77,
        "Dispatch_Id": 1,
        "Kernel_Id": 9,
        "Kernel_Name": name,
        "Correlation_Id": 0,
        "Start_Timestamp": start,
        "End_Timestamp": end,
        "Duration": end - start,
        **dict.fromkeys((*GRID[1:3], *GRID[4:]), 1),
        "Workgroup_Size_X": 256,
        "Grid_Size_X": 2048,
        **values,
    }


def kernel_trace(
    path: Path, rows: Sequence[dict[str, Value]], era: str = "7.0", writer: Callable[..., str] = direct
) -> Path:
    """Write a kernel_trace of an era."""
    header = ERAS[era]
    values = [[row.get(name, AGENTS[era] if name == "Agent_Id" else 0) for name in header] for row in rows]
    return write(path, writer(header, values))


def write(path: Path, text: str) -> Path:
    """Write a file and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


@dataclass
class Set:
    """The files of one process, with ``prefix`` before their names."""

    folder: Path
    prefix: str = "17"
    era: str = "7.0"
    writer: Callable[..., str] = direct
    kernels: list[dict[str, Value]] = field(default_factory=list)
    calls: list[list[Value]] = field(default_factory=list)
    markers: list[list[Value]] = field(default_factory=list)
    copies: list[list[Value]] = field(default_factory=list)
    counters: list[list[Value]] = field(default_factory=list)

    def path(self, domain: str) -> Path:
        """Return where a file of the set lies."""
        return self.folder / f"{self.prefix}_{domain}.csv"

    def call(self, name: str, start: int, end: int, correlation: int, thread: int = 77) -> None:
        """Add a call of HIP."""
        self.calls.append(["HIP_RUNTIME_API_EXT", name, 17, thread, correlation, start, end])

    def marker(self, text: str, start: int, end: int, thread: int = 77, domain: str = "MARKER_CORE_RANGE_API") -> None:
        """Add a range, or a mark where it ends as it starts."""
        self.markers.append([domain, text, 17, thread, len(self.markers) + 1, start, end])

    def copy(self, direction: str, start: int, end: int, source: Value, target: Value, correlation: int = 0) -> None:
        """Add a copy."""
        self.copies.append(["MEMORY_COPY", f"MEMORY_COPY_{direction}", 1, source, target, correlation, start, end])

    def counter(self, dispatch: int, name: str, value: float, start: int, end: int, kernel_name: str = "k") -> None:
        """Add a counter of a dispatch."""
        head: list[Value] = [dispatch, dispatch, "Agent 4", 1, 17, 77, 2048, 9, kernel_name, 256, 0, 0, 16, 0, 128]
        self.counters.append([*head, name, value, start, end])

    def agents(self, *rows: tuple[int, int, str]) -> Path:
        """Write agent_info: node id, logical node id, type."""
        values = [
            [node, logical, kind, 304 if kind == "GPU" else 64, 2100, 0, "gfx942", "AMD", "MI300X, one of several"]
            for node, logical, kind in rows
        ]
        return write(self.path("agent_info"), direct(AGENT_INFO, values))

    def stats(self, domain: str, *rows: tuple[str, int, int]) -> Path:
        """Write statistics: name, calls, sum."""
        values = [[name, calls, total, total / calls, 100.0, 1, 1, 0.0] for name, calls, total in rows]
        return write(self.path(f"{domain}_stats"), self.writer(STATS, values))

    def save(self) -> list[Path]:
        """Write the files that have rows."""
        files = [kernel_trace(self.path("kernel_trace"), self.kernels, self.era, self.writer)] if self.kernels else []
        for domain, header, rows in (
            ("hip_api_trace", CALLS, self.calls),
            ("marker_api_trace", CALLS, self.markers),
            ("memory_copy_trace", COPIES, self.copies),
            ("counter_collection", COUNTERS, self.counters),
        ):
            if rows:
                files.append(write(self.path(domain), self.writer(header, rows)))
        return sorted(self.folder.glob(f"{self.prefix}_*"))


def small(folder: Path, **values: Any) -> Set:
    """A set of two kernels, a call, a copy and a range on an MI300X whose GPUs are agents 4 and 5."""
    made = Set(folder, **values)
    made.kernels = [
        kernel("void k<int, float>(float*)", 1_000, 1_500, Correlation_Id=1, Dispatch_Id=1),
        kernel("Cijk_Alik_Bljk_SB_MT64x64", 2_000, 2_700, Correlation_Id=2, Dispatch_Id=2),
    ]
    made.call("hipLaunchKernel", 900, 950, 1)
    made.call("hipModuleLaunchKernel", 960, 990, 2)
    made.copy("HOST_TO_DEVICE", 3_000, 3_500, "Agent 0", "Agent 4", 3)
    made.marker("forward", 800, 2_500)
    return made
