"""Headers of the CSV files: tell the kind of a file by its columns, in the spellings of every release.

Names are compared ignoring case, quotes and spaces, so "Lds_Block_Size" and ``LDS_Block_Size`` are one column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import BinaryIO

LONGEST_HEADER = 1 << 16
KERNEL, COPY, CALL, COUNTER = "kernel", "copy", "call", "counter"
AGENT, STATS, ALLOCATION, SCRATCH, LEGACY = "agent", "stats", "allocation", "scratch", "legacy"

_REQUIRED = (
    (COUNTER, {"counter_name", "counter_value", "kernel_name", "dispatch_id"}),
    (LEGACY, {"kernelname", "beginns", "endns"}),
    (LEGACY, {"kernel_name", "gpu_id", "start_timestamp", "end_timestamp"}),
    (KERNEL, {"kernel_name", "start_timestamp", "end_timestamp"}),
    (COPY, {"direction", "source_agent_id", "start_timestamp", "end_timestamp"}),
    (CALL, {"domain", "function", "start_timestamp", "end_timestamp"}),
    (ALLOCATION, {"operation", "allocation_size", "address"}),
    (SCRATCH, {"operation", "alloc_flags"}),
    (AGENT, {"agent_type", "node_id"}),
    (STATS, {"name", "calls", "totaldurationns"}),
)
"""Kinds of files by the columns they must have; the first match counts."""

_ALIASES = {
    "kernelname": "kernel_name",
    "beginns": "start_timestamp",
    "endns": "end_timestamp",
    "gpu-id": "agent_id",
    "gpu_id": "agent_id",
    "queue-id": "queue_id",
    "tid": "thread_id",
    "pid": "process_id",
    "arch_vgpr": "vgpr_count",
    "arch_vgpr_count": "vgpr_count",
    "accum_vgpr": "accum_vgpr_count",
    "sgpr": "sgpr_count",
    "scr": "scratch_size",
    "scratch_per_workitem": "scratch_size",
    "lds": "lds_block_size",
    "lds_per_workgroup": "lds_block_size",
    "index": "dispatch_id",
}
"""Column names of older tools → the names used here."""

_FREE_TEXT = {
    KERNEL: "kernel_name",
    COUNTER: "kernel_name",
    LEGACY: "kernel_name",
    CALL: "function",
    COPY: "direction",
    STATS: "name",
    ALLOCATION: "operation",
    SCRATCH: "operation",
}
"""The one column of a file that may contain arbitrary text."""

_TEXTS = frozenset(("kind", "agent_id", "source_agent_id", "destination_agent_id", "guid", "domain", "counter_name"))
_USED = {
    KERNEL: "kernel_name start_timestamp end_timestamp agent_id queue_id stream_id dispatch_id correlation_id "
    "process_id guid group_segment_size lds_block_size vgpr_count accum_vgpr_count sgpr_count "
    "scratch_size graph_exec_id graph_node_id workgroup_size_x "
    "workgroup_size_y workgroup_size_z grid_size_x grid_size_y grid_size_z replay_pass",
    COUNTER: "kernel_name start_timestamp end_timestamp agent_id queue_id dispatch_id correlation_id process_id guid "
    "lds_block_size vgpr_count accum_vgpr_count sgpr_count scratch_size counter_name counter_value",
    COPY: "direction source_agent_id destination_agent_id stream_id correlation_id start_timestamp end_timestamp guid",
    CALL: "domain function process_id thread_id correlation_id start_timestamp end_timestamp guid",
    STATS: "name calls totaldurationns",
    ALLOCATION: "operation guid",
    SCRATCH: "operation guid",
}
_USED[LEGACY] = _USED[KERNEL]


@dataclass(frozen=True)
class Header:
    """The header of a file: its columns under the names used here, and the position of the free-text column."""

    domain: str
    columns: tuple[str, ...]
    text: str
    delimiter: str = ","

    @property
    def text_at(self) -> int:
        """Index of the free-text column."""
        return self.columns.index(self.text)

    @property
    def after_text(self) -> int:
        """Number of columns after it."""
        return len(self.columns) - self.text_at - 1

    @property
    def used(self) -> tuple[str, ...]:
        """The columns that are read, in file order."""
        wanted = _USED[self.domain].split()
        return tuple(name for name in self.columns if name in wanted)

    def is_text(self, column: str) -> bool:
        """Whether a column holds text; all others hold integers, except the counter's value."""
        return column == self.text or column in _TEXTS

    def has(self, column: str) -> bool:
        """Whether the file has the column."""
        return column in self.columns


def first_line(file: BinaryIO) -> bytes:
    """Read up to the end of the first non-blank line and return it: the header."""
    while line := file.readline(LONGEST_HEADER):
        if line.strip():
            return line
    return b""


def names_of(line: bytes) -> list[str]:
    """Return the column names in a first line."""
    return [name.strip().strip('"') for name in line.decode("utf-8-sig", errors="replace").strip("\r\n").split(",")]


def header_of(line: bytes) -> Header | None:
    """Return the header for a first line; None if it is not from ROCm."""
    try:
        text = line.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    names = [_plain(name) for name in text.strip("\r\n").split(",")]
    domain = next((domain for domain, required in _REQUIRED if required.issubset(names)), None)
    if domain is None:
        return None
    columns = _unique([_ALIASES.get(name, name) for name in names])
    if domain == AGENT:
        return Header(domain, columns, "agent_type")
    return Header(domain, columns, _FREE_TEXT[domain])


def _plain(name: str) -> str:
    return name.strip().strip('"').strip().lower()


def _unique(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names with repeated ones changed, so that the first is read."""
    taken: list[str] = []
    for name in names:
        taken.append(name if name not in taken else f"{name}.{len(taken)}")
    return tuple(taken)
