"""What an export says of itself, the machine and its GPUs: a fixed choice, and nothing of the environment."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from tracedb_nsys.tables import META, Export

SYSTEM = "TARGET_INFO_SYSTEM_ENV"
SAYINGS = ("No CUDA events collected", "might not have been", "ermission", "Not all CUDA events")
GPU_COLUMNS = ("id", "vmId", "cuDevice", "name", "smCount", "totalMemory", "uuid", "computeMajor", "computeMinor")
DEVICE_TYPES = {
    "device_id": pa.int32(),
    "vendor": pa.string(),
    "name": pa.string(),
    "sm_count": pa.int32(),
    "memory_bytes": pa.int64(),
    "uuid": pa.string(),
    "arch": pa.string(),
    "is_used": pa.bool_(),
}


@dataclass(frozen=True)
class Header:
    """The header of an export."""

    tool_version: str | None
    host: str | None
    release: str | None
    clock_zero_unix_ns: int | None
    metadata: dict[str, Any]
    warnings: tuple[str, ...]
    """What nsys itself said of activity that it did not get."""
    gpus: list[dict[str, Any]] = field(default_factory=list)
    ordinals: list[tuple[int, int, int, str | None]] = field(default_factory=list)
    """Process, CUDA ordinal in it, GPU, UUID."""
    mpi_ranks: dict[int, int] = field(default_factory=dict)


def header_of(export: Export) -> Header:
    """Read the header."""
    about: dict[str, str] = {}
    for table in META:
        about.update((key, value) for key, value in export.small(table, ("name", "value")) if value is not None)
    system = {key: value for key, value in export.small(SYSTEM, ("name", "value")) if key in SYSTEM_KEYS and value}
    modes = {
        str(value).lower()
        for key, value in export.small("META_DATA_CAPTURE", ("name", "value"))
        if str(key).endswith("CUDA_GRAPH_TRACE_OPTIONS:MODE")
    }
    window = export.small("ANALYSIS_DETAILS", ("duration",))
    version = about.get("EXPORT_PRODUCT_VERSION")
    metadata = {
        "format": export.format,
        "schema": about.get("EXPORT_SCHEMA_VERSION"),
        "graph_trace": ",".join(sorted(modes)) or None,
        "driver": system.get("NvDriverVersion"),
        "cuda_driver": system.get("CudaDriverVersion"),
        "capture_duration_ns": window[0][0] if window else None,
    }
    said = [text for (text,) in export.small("DIAGNOSTIC_EVENT", ("text",)) if text and any(s in text for s in SAYINGS)]
    return Header(
        tool_version=f"nsys {version}" if version else None,
        host=system.get("Hostname"),
        release=system.get("SoftwareReleaseVersion"),
        clock_zero_unix_ns=_clock_zero(export, about),
        metadata={key: value for key, value in metadata.items() if value is not None},
        warnings=tuple(dict.fromkeys(" ".join(text.split()) for text in said)),
        gpus=[dict(zip(GPU_COLUMNS, row, strict=True)) for row in export.small("TARGET_INFO_GPU", GPU_COLUMNS)],
        ordinals=[
            (pid, ordinal, gpu, uuid)
            for pid, ordinal, gpu, uuid in export.small("TARGET_INFO_CUDA_DEVICE", ("pid", "cudaId", "gpuId", "uuid"))
            if ordinal is not None
        ],
        mpi_ranks=_mpi_ranks(export),
    )


SYSTEM_KEYS = frozenset(("Hostname", "SoftwareReleaseVersion", "NvDriverVersion", "CudaDriverVersion"))


def _clock_zero(export: Export, about: dict[str, str]) -> int | None:
    """Return the Unix time of the session's zero; exports may be shifted, or counted from 1970."""
    said = about.get("EXPORT_PARAM_TIME_SHIFT", "")
    shift = int(said) if said.lstrip("-").isdigit() else 0
    if about.get("EXPORT_PARAM_TIME_NORMALIZE", "").lower() == "true":
        return -shift
    session = [row[0] for row in export.small("TARGET_INFO_SESSION_START_TIME", ("utcEpochNs",)) if row[0]]
    return int(session[0]) - shift if session else None


def _mpi_ranks(export: Export) -> dict[int, int]:
    """Return the rank by process."""
    ranks = {}
    for process, thread, rank in export.small("MPI_RANKS", ("globalPid", "globalTid", "rank")):
        number = process if process is not None else thread
        if number is not None and rank is not None:
            ranks[(number >> 24) & 0xFFFFFF] = int(rank)
    return ranks


def devices(header: Header, gpid: int | None, used: Iterable[int]) -> pa.Table:
    """Return the rows of ``device`` of a process: those that it used, and those that it could see.

    CUDA numbers devices within a process; TARGET_INFO_CUDA_DEVICE says which GPU a number means. Exports before 2025
    lack it, and TARGET_INFO_GPU.cuDevice is taken. TARGET_INFO_GPU.id counts otherwise.
    """
    pid = (gpid >> 24) & 0xFFFFFF if gpid is not None else None
    machine = gpid & (0xFFFF << 48) if gpid is not None else None
    gpus = [gpu for gpu in header.gpus if machine is None or gpu["vmId"] in (None, machine)] or header.gpus
    by_id = {gpu["id"]: gpu for gpu in gpus}
    seen: dict[int, dict[str, Any]] = {}
    for owner, ordinal, gpu, uuid in header.ordinals:
        if owner == pid:
            found = by_id.get(gpu, {})
            seen[ordinal] = {**found, "uuid": uuid or found.get("uuid")}
    if not header.ordinals:
        seen = {gpu["cuDevice"]: gpu for gpu in gpus if gpu["cuDevice"] is not None}
    busy = set(used)
    if not header.ordinals and len(gpus) == 1 and len(busy) == 1 and busy.isdisjoint(seen):
        seen = {next(iter(busy)): gpus[0]}
    rows = [_device(number, seen.get(number, {}), number in busy) for number in sorted({*busy, *seen})]
    return pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in DEVICE_TYPES.items()})


def _device(number: int, gpu: dict[str, Any], is_used: bool) -> dict[str, Any]:
    major, minor = gpu.get("computeMajor"), gpu.get("computeMinor")
    return {
        "device_id": number,
        "vendor": "NVIDIA",
        "name": gpu.get("name") or None,
        "sm_count": gpu.get("smCount") or None,
        "memory_bytes": gpu.get("totalMemory") or None,
        "uuid": gpu.get("uuid") or None,
        "arch": f"sm_{major}{minor}" if major and minor is not None else None,
        "is_used": is_used,
    }


def metadata_text(header: Header, **more: Any) -> str:
    """Return the JSON text of the metadata."""
    return json.dumps({**header.metadata, **{key: value for key, value in more.items() if value is not None}})
