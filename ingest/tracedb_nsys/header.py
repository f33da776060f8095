"""The export's metadata about itself, the machine and its GPUs.

Only a fixed list of keys is read, so no environment variable and no command line is stored.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from tracedb_nsys.export.integer_limits import ANY, UNSIGNED_31, number_of, text_of
from tracedb_nsys.export.protocol import META, Export

SYSTEM = "TARGET_INFO_SYSTEM_ENV"
SYSTEM_KEYS = frozenset(("Hostname", "SoftwareReleaseVersion", "NvDriverVersion", "CudaDriverVersion"))
RECORDING_FAULTS = ("No CUDA events collected", "might not have been", "ermission", "Not all CUDA events")
"""Parts of nsys's messages about activity that it could not record; "ermission": Permission or permission."""
GPU_COLUMNS = ("id", "vmId", "cuDevice", "name", "smCount", "totalMemory", "uuid", "computeMajor", "computeMinor")
DEVICE_NUMBER_COLUMNS = ("pid", "cudaId", "gpuId", "uuid", "numMultiprocessors")
TEXTS = frozenset(("name", "value", "text", "uuid"))
FAR = 1 << 62
LIMITS = {
    **dict.fromkeys(
        ("smCount", "numMultiprocessors", "computeMajor", "computeMinor", "cuDevice", "cudaId", "rank"), UNSIGNED_31
    ),
    **dict.fromkeys(("totalMemory", "utcEpochNs"), (0, FAR)),
}
FIRST_SCHEMA, LAST_SCHEMA = (2, 9), (3, 25)
"""Oldest and newest version of the export's tables that tracedb was tested with."""
KNOWN_SCHEMAS = "{}.{} to {}.{}".format(*FIRST_SCHEMA, *LAST_SCHEMA)


@dataclass(frozen=True)
class Header:
    """The header of an export."""

    tool_version: str | None
    host: str | None
    release: str | None
    clock_zero_unix_ns: int | None
    metadata: dict[str, Any]
    warnings: tuple[str, ...]
    """nsys's own messages about activity that it could not record."""
    odd: Counter[tuple[str, str]]
    """Values that could not be read, by table and column."""
    gpus: list[dict[str, Any]] = field(default_factory=list)
    device_numbers: list[dict[str, Any]] = field(default_factory=list)
    """Rows of TARGET_INFO_CUDA_DEVICE, which map a process's device number to a GPU."""
    mpi_ranks: dict[int, int] = field(default_factory=dict)

    @property
    def untested_schema(self) -> str | None:
        """The version of the export's tables, if tracedb was not tested with it."""
        schema = self.metadata.get("schema")
        if schema is None:
            return None
        numbers = [int(part) for part in schema.split(".")[:2] if part.isdecimal() and len(part) < 10]
        return None if len(numbers) == 2 and FIRST_SCHEMA <= tuple(numbers) <= LAST_SCHEMA else schema


def header_of(export: Export) -> Header:
    """Read the header."""
    small = _SmallTables(export)
    about: dict[str, str] = {}
    for table in META:
        about.update(
            (name, value) for name, value in small.rows(table, ("name", "value")) if name and value is not None
        )
    system = {key: value for key, value in small.rows(SYSTEM, ("name", "value")) if key in SYSTEM_KEYS and value}
    modes = {
        str(value).lower()
        for key, value in small.rows("META_DATA_CAPTURE", ("name", "value"))
        if str(key).endswith("CUDA_GRAPH_TRACE_OPTIONS:MODE")
    }
    window = small.rows("ANALYSIS_DETAILS", ("duration",))
    version = about.get("EXPORT_PRODUCT_VERSION")
    schema = about.get("EXPORT_SCHEMA_VERSION")
    metadata = {
        "format": export.format,
        "schema": schema,
        "known_schemas": None if schema is None else KNOWN_SCHEMAS,
        "graph_trace": ",".join(sorted(modes)) or None,
        "driver": system.get("NvDriverVersion"),
        "cuda_driver": system.get("CudaDriverVersion"),
        "capture_duration_ns": window[0][0] if window else None,
    }
    said = [
        text
        for (text,) in small.rows("DIAGNOSTIC_EVENT", ("text",))
        if text and any(fault in text for fault in RECORDING_FAULTS)
    ]
    return Header(
        tool_version=f"nsys {version}" if version else None,
        host=system.get("Hostname"),
        release=system.get("SoftwareReleaseVersion"),
        clock_zero_unix_ns=_clock_zero(small, about),
        metadata={key: value for key, value in metadata.items() if value is not None},
        warnings=tuple(dict.fromkeys(" ".join(text.split()) for text in said)),
        gpus=[dict(zip(GPU_COLUMNS, row, strict=True)) for row in small.rows("TARGET_INFO_GPU", GPU_COLUMNS)],
        device_numbers=[
            dict(zip(DEVICE_NUMBER_COLUMNS, row, strict=True))
            for row in small.rows("TARGET_INFO_CUDA_DEVICE", DEVICE_NUMBER_COLUMNS)
            if row[1] is not None
        ],
        mpi_ranks=_mpi_ranks(small),
        odd=small.odd,
    )


class _SmallTables:
    """Reads small tables; a non-number in a number column becomes None and is counted."""

    def __init__(self, export: Export) -> None:
        self._export = export
        self.odd: Counter[tuple[str, str]] = Counter()

    def rows(self, table: str, columns: tuple[str, ...]) -> list[tuple[Any, ...]]:
        return [
            tuple(self._value(table, name, value) for name, value in zip(columns, row, strict=True))
            for row in self._export.small(table, columns)
        ]

    def _value(self, table: str, name: str, value: object) -> str | int | None:
        if name in TEXTS:
            return text_of(value)
        number = number_of(value, *LIMITS.get(name, ANY))
        if number is None and value is not None:
            self.odd[table, name] += 1
        return number


def _clock_zero(small: _SmallTables, about: dict[str, str]) -> int | None:
    """Return the Unix time in ns of the export's time 0.

    An export may be shifted (``--ts-shift``), or use Unix time already (``--ts-normalize``).
    """
    said = about.get("EXPORT_PARAM_TIME_SHIFT") or "0"
    shift = number_of(said, -FAR, FAR)
    session = [row[0] for row in small.rows("TARGET_INFO_SESSION_START_TIME", ("utcEpochNs",)) if row[0]]
    if shift is None:
        small.odd["META_DATA_EXPORT", "EXPORT_PARAM_TIME_SHIFT"] += 1
        return None
    if about.get("EXPORT_PARAM_TIME_NORMALIZE", "").lower() == "true":
        return -shift
    return int(session[0]) - shift if session else None


def _mpi_ranks(small: _SmallTables) -> dict[int, int]:
    """Return the rank by process."""
    ranks = {}
    for process, thread, rank in small.rows("MPI_RANKS", ("globalPid", "globalTid", "rank")):
        number = process if process is not None else thread
        if number is not None and rank is not None:
            ranks[(number >> 24) & 0xFFFFFF] = int(rank)  # the process id in nsys's globalPid or globalTid
    return ranks


def metadata_text(header: Header, **more: Any) -> str:
    """Return the JSON text of the metadata."""
    return json.dumps({**header.metadata, **{key: value for key, value in more.items() if value is not None}})
