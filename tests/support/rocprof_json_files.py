"""Small documents as rocprofv3 writes them in JSON, built by hand."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

KINDS = [
    ("NONE", []),
    ("HIP_RUNTIME_API", ["hipMalloc", "hipLaunchKernel"]),
    ("MARKER_CONTROL_API", ["roctxProfilerPause", "roctxProfilerResume"]),
    ("MARKER_CORE_RANGE_API", ["roctxMarkA", "roctxThreadRangeA", "roctxProcessRangeA", "roctxGetThreadId"]),
    ("MEMORY_COPY", ["MEMORY_COPY_NONE", "MEMORY_COPY_HOST_TO_DEVICE", "MEMORY_COPY_DEVICE_TO_HOST"]),
    ("KERNEL_DISPATCH", ["KERNEL_DISPATCH_NONE", "KERNEL_DISPATCH_ENQUEUE", "KERNEL_DISPATCH_COMPLETE"]),
]
HANDLES = {0: 900, 4: 904, 5: 905}
"""Handles of agents by node id: a CPU and two GPUs."""
KERNELS = {7: "void k<int, float>(float*)", 8: "Cijk_Alik_Bljk_SB_MT64x64"}


@dataclass
class Document:
    """One process; ``kinds`` is the table of kinds, whose order differs between releases."""

    pid: int = 17
    kinds: list[tuple[str, list[str]]] = field(default_factory=lambda: list(KINDS))
    kernels: list[dict[str, Any]] = field(default_factory=list)
    counted: list[dict[str, Any]] = field(default_factory=list)
    calls: list[dict[str, Any]] = field(default_factory=list)
    markers: list[dict[str, Any]] = field(default_factory=list)
    copies: list[dict[str, Any]] = field(default_factory=list)
    messages: dict[int, str] = field(default_factory=dict)

    def _operation(self, name: str) -> dict[str, int]:
        place, found = next((at, names) for at, (_, names) in enumerate(self.kinds) if name in names)
        return {"kind": place, "operation": found.index(name)}

    def dispatch(self, start: int, end: int, kernel: int = 7, **values: Any) -> dict[str, Any]:
        """A dispatch; ``values`` go into what was dispatched."""
        return {
            "size": 184,
            **self._operation("KERNEL_DISPATCH_COMPLETE"),
            "thread_id": 77,
            "correlation_id": {"internal": values.pop("correlation", 0), "external": 0},
            "start_timestamp": start,
            "end_timestamp": end,
            "dispatch_info": {
                "size": 72,
                "agent_id": {"handle": HANDLES[values.pop("agent", 4)]},
                "queue_id": {"handle": values.pop("queue", 1)},
                "kernel_id": kernel,
                "dispatch_id": values.pop("dispatch", len(self.kernels) + 1),
                "private_segment_size": 0,
                "group_segment_size": values.pop("shared", 1024),
                "workgroup_size": {"x": 256, "y": 1, "z": 1},
                "grid_size": {"x": 2048, "y": 1, "z": 1},
            },
            "stream_id": {"handle": values.pop("stream", 3)},
        }

    def kernel(self, start: int, end: int, kernel: int = 7, **values: Any) -> None:
        self.kernels.append(self.dispatch(start, end, kernel, **values))

    def count(self, dispatch: int, start: int, end: int, *values: tuple[int, float]) -> None:
        """Add the counters of a dispatch: handle and value, a handle once for each part of the device."""
        records = [{"counter_id": {"handle": handle}, "value": value} for handle, value in values]
        data = self.dispatch(start, end, dispatch=dispatch)
        self.counted.append({"size": 1, "thread_id": 77, "dispatch_data": data, "records": records})

    def _call(self, name: str, start: int, end: int, correlation: int) -> dict[str, Any]:
        ids = {"internal": correlation, "external": 0}
        times = {"start_timestamp": start, "end_timestamp": end}
        return {"size": 48, **self._operation(name), "thread_id": 77, "correlation_id": ids, **times}

    def call(self, name: str, start: int, end: int, correlation: int) -> None:
        self.calls.append(self._call(name, start, end, correlation))

    def marker(self, name: str, start: int, end: int, text: str) -> None:
        correlation = 1_000 + len(self.markers)
        self.messages[correlation] = text
        self.markers.append(self._call(name, start, end, correlation))

    def copy(self, name: str, start: int, end: int, source: int, target: int, size: int) -> None:
        agents = {"src_agent_id": {"handle": HANDLES[source]}, "dst_agent_id": {"handle": HANDLES[target]}}
        self.copies.append({**self._call(name, start, end, 0), **agents, "bytes": size, "stream_id": {"handle": 0}})

    def entry(self) -> dict[str, Any]:
        """Return the entry of the process."""
        return {
            "metadata": {"node": {"hostname": "host-a"}, "pid": self.pid, "command": ["secret"]},
            "agents": [
                {"size": 3, "id": {"handle": handle}, "type": 2 if node else 1, "node_id": node,
                 "logical_node_id": node, "logical_node_type_id": max(node - 4, 0), "name": "gfx950" if node else "cpu",
                 "product_name": "MI350X", "cu_count": 256, "max_engine_clk_fcompute": 2200, "io_links": [{"type": 2}],
                 "mem_banks": [{"heap_type": 1, "size_in_bytes": 309_220_868_096}]}
                for node, handle in HANDLES.items()
            ],
            "counters": [{"id": {"handle": 1}, "name": "SQ_WAVES"}, {"id": {"handle": 2}, "name": "GRBM_COUNT"}],
            "strings": {
                "callback_records": [],
                "buffer_records": [{"kind": kind, "operations": names} for kind, names in self.kinds],
                "marker_api": [{"key": key, "value": text} for key, text in self.messages.items()],
            },
            "code_objects": [{"uri": "file:///secret/lib.so"}],
            "kernel_symbols": [
                {"size": 0, "kernel_id": 0, "kernel_name": "", "formatted_kernel_name": "0"},
                *(
                    {"size": 88, "kernel_id": number, "kernel_name": "_Zk.kd", "formatted_kernel_name": name,
                     "demangled_kernel_name": f"{name}.kd", "group_segment_size": 512, "arch_vgpr_count": 24}
                    for number, name in KERNELS.items()
                ),
            ],
            "host_functions": [], "summary": [],
            "callback_records": {"counter_collection": self.counted},
            "buffer_records": {
                "kernel_dispatch": self.kernels, "hip_api": self.calls, "marker_api": self.markers,
                "memory_copy": self.copies, "memory_allocation": [{"size": 1}] * 2, "pc_sample_host_trap": [],
            },
        }  # fmt: skip


def small(**values: Any) -> Document:
    """Two kernels out of order, their calls, a range in a range, a mark, a copy."""
    made = Document(**values)
    made.kernel(2_000, 2_700, 8, correlation=2, agent=5)
    made.kernel(1_000, 1_500, correlation=1)
    made.call("hipLaunchKernel", 900, 950, 1)
    made.call("hipLaunchKernel", 960, 990, 2)
    made.marker("roctxThreadRangeA", 800, 1_900, 'forward "quoted" }, {"size": 1')
    made.marker("roctxThreadRangeA", 880, 955, "inner")
    made.marker("roctxMarkA", 970, 970, "here")
    made.marker("roctxProcessRangeA", 700, 5_000, "whole")
    made.marker("roctxProfilerPause", 5_100, 5_200, "pause")
    made.marker("roctxGetThreadId", 5_300, 5_301, "thread")
    made.copy("MEMORY_COPY_HOST_TO_DEVICE", 3_000, 3_500, 0, 5, 4_096)
    return made


def save(path: Path, *documents: Document, indent: int | None = None) -> Path:
    """Write the processes into one file."""
    entries = [document.entry() for document in documents]
    separators = (",", ":") if indent is None else None
    path.write_text(json.dumps({"rocprofiler-sdk-tool": entries}, indent=indent, separators=separators))
    return path
