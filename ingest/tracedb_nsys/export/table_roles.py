"""Which tables of an export hold kernels, copies, calls or other GPU work, by their names and columns.

The names that nsys writes today come first. Others (CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, …_KERNEL_V3) are recognised
by a word in their names, so that a release that renames a table does not look like a recording without GPU work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tracedb_nsys.export.protocol import DRIVER, GRAPH, KERNEL, MEMCPY, MEMSET, NVTX, RUNTIME, SYNC, TIMES

PREFIX = "CUPTI_ACTIVITY_KIND_"
WORDS = (("KERNEL", KERNEL), ("MEMCPY", MEMCPY), ("MEMSET", MEMSET), ("GRAPH_TRACE", GRAPH), ("RUNTIME", RUNTIME),
         ("DRIVER", DRIVER), ("SYNCHRONIZATION", SYNC))  # fmt: skip
OTHERS = (f"{PREFIX}OPENACC_", f"{PREFIX}OPENMP")
NAMES = ("demangledName", "mangledName", "shortName")
EXPECTED = {
    KERNEL: (("deviceId",), ("streamId",), NAMES),
    MEMCPY: (("deviceId",), ("streamId",), ("bytes",)),
    MEMSET: (("deviceId",), ("streamId",), ("bytes",)),
    GRAPH: (("deviceId",),),
    RUNTIME: (("globalTid",), ("correlationId",), ("nameId",)),
    DRIVER: (("globalTid",), ("correlationId",), ("nameId",)),
    SYNC: (("syncType",), ("correlationId",)),
}
"""Columns expected for a role, one of each group; rows are of little use without them, and unreadable without times."""
REQUIRED: dict[str, tuple[tuple[str, ...], ...]] = {
    KERNEL: (("deviceId",), ("streamId",), NAMES),
    MEMCPY: (("deviceId",), ("streamId",)),
    MEMSET: (("deviceId",), ("streamId",)),
    RUNTIME: (("globalTid",), ("nameId",)),
    DRIVER: (("globalTid",), ("nameId",)),
    NVTX: (("globalTid",),),
}
"""Columns in which nsys always writes a value, one of each group."""
NO_WORK = (
    "CUDA_EVENT", "OVERHEAD", "UNIFIED_MEMORY", "MEMORY", "MODULE", "CONTEXT", "STREAM", "DEVICE",
    "ENVIRONMENT", "EXTERNAL_CORRELATION", "JIT",
)  # fmt: skip
"""Suffixes of CUPTI activity names that are not GPU work."""
PAGE_FAULTS = "CUDA_UM_"


def role_of(table: str) -> str | None:
    """Return the current nsys name of the table with the same kind of rows; None if there is none."""
    if not table.upper().startswith(PREFIX) or table.upper().startswith(OTHERS):
        return None
    rest = table.upper().removeprefix(PREFIX)
    return next((role for word, role in WORDS if word in rest), None)


def tables_of(role: str, tables: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the tables of a role, the one that nsys writes today first."""
    return sorted((table for table in tables if role_of(table) == role), key=lambda table: (table != role, table))


def absent(role: str, columns: Sequence[str]) -> list[str]:
    """Return the expected columns that a table of a role lacks."""
    return [" or ".join(group) for group in EXPECTED[role] if set(group).isdisjoint(columns)]


def required(table: str) -> tuple[tuple[str, ...], ...]:
    """Return the groups of columns of a table of which every row must have one value."""
    return REQUIRED.get(role_of(table) or table, ())


def is_gpu_work(table: str, columns: Sequence[str]) -> bool:
    """Whether rows of an unknown table look like GPU work: they have a time span and a device."""
    name = table.upper().removeprefix(PREFIX)
    if name.startswith((*NO_WORK, PAGE_FAULTS)):
        return False
    return set(TIMES).issubset(columns) and not {"deviceId", "streamId"}.isdisjoint(columns)
