"""The header of a trace, around its events: clock, devices, rank, versions. Nothing else is kept.

Headers may hold the recording machine's whole environment; only the fields named here are read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tracedb.errors import ReadError
from tracedb.ingester.issues import Account
from tracedb_torch.recover.repair import clean
from tracedb_torch.split.blocks import BOM, EVENTS_KEY, Trace

KEPT = (
    "schemaVersion",
    "displayTimeUnit",
    "cuda_runtime_version",
    "cuda_driver_version",
    "cupti_version",
    "hip_runtime_version",
    "hip_driver_version",
    "roctracer_version",
    "rocprofiler-sdk_version",
    "trace_id",
    "record_shapes",
    "with_stack",
    "with_flops",
    "with_modules",
    "profile_memory",
)
READ = (*KEPT, "baseTimeNanoseconds", "distributedInfo", "deviceProperties", "host_name")
COMMON = ("displayTimeUnit", "trace_id", "host_name")  # also in Chrome traces of other tools
DISTRIBUTED = ("backend", "world_size", "pg_count", "pg_config", "nccl_version")
RANK = re.compile(rb'(?<!\\)"distributedInfo"\s*:\s*\{[^{}\[\]]*?(?<!\\)"rank"\s*:\s*"?(\d+)')
EVENT_START = re.compile(rb'\{\s*"ph"\s*:\s*"[A-Za-z]"\s*,\s*"(?:cat|name|pid|tid|ts|s|id)"\s*:')
DEVICE_NUMBERS = ("id", "numSms", "computeMajor", "computeMinor", "warpSize")
LATEST_BASE = 1 << 62  # ns since 1970, in the year 2116: a later base plus a time in the trace overflows 64 bits
CUDA_KEYS = ("cuda_runtime_version", "cuda_driver_version", "cupti_version")
AMD_KEYS = ("hip_runtime_version", "hip_driver_version", "roctracer_version", "rocprofiler-sdk_version")


@dataclass(frozen=True)
class Header:
    """The header fields in use; None if the trace lacks one."""

    fields: dict[str, Any]

    @property
    def base_ns(self) -> int | None:
        """Unix time of the trace's zero, in ns."""
        found = _int(self.fields.get("baseTimeNanoseconds"))
        return found if found is not None and 0 <= found < LATEST_BASE else None

    @property
    def is_torch(self) -> bool:
        """Whether torch.profiler wrote any of the fields."""
        return any(key in self.fields for key in READ if key not in COMMON)

    @property
    def distributed(self) -> dict[str, Any]:
        """The distributedInfo object, or an empty one."""
        found = self.fields.get("distributedInfo")
        return found if isinstance(found, dict) else {}

    @property
    def rank(self) -> int | None:
        """Rank of the process."""
        return _small(self.distributed.get("rank"))

    @property
    def world_size(self) -> int | None:
        """Number of ranks."""
        return _small(self.distributed.get("world_size"))

    @property
    def host(self) -> str | None:
        """Host name."""
        found = self.fields.get("host_name")
        return clean(found) or None if isinstance(found, str) else None

    @property
    def devices(self) -> list[dict[str, Any]]:
        """The deviceProperties list: the fields in use per device, None where one is not of the expected type."""
        found = self.fields.get("deviceProperties")
        items = [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []
        return [
            {
                **{key: _small(item.get(key)) for key in DEVICE_NUMBERS},
                "totalGlobalMem": _int(item.get("totalGlobalMem")),
                "name": clean(item["name"]) if isinstance(item.get("name"), str) else None,
            }
            for item in items
        ]

    @property
    def is_amd(self) -> bool:
        """Whether the trace comes from ROCm."""
        return any(key in self.fields for key in AMD_KEYS) or any(
            item.get("warpSize") == 64 or "AMD" in str(item.get("name")) for item in self.devices
        )

    @property
    def vendor(self) -> str | None:
        """Vendor of the devices, by the libraries that recorded them; None if the trace names none."""
        if self.is_amd:
            return "AMD"
        is_cuda = any(key in self.fields for key in CUDA_KEYS)
        sized = any(item["numSms"] is not None and item["computeMajor"] is not None for item in self.devices)
        return "NVIDIA" if is_cuda or sized else None

    @property
    def tool_version(self) -> str | None:
        """Versions of the trace format and of the vendor's tracing library."""
        parts = [
            f"{label} {self.fields[key]}"
            for key, label in (
                ("schemaVersion", "Kineto schema"),
                ("cupti_version", "CUPTI"),
                ("roctracer_version", "roctracer"),
                ("rocprofiler-sdk_version", "rocprofiler-sdk"),
                ("cuda_runtime_version", "CUDA"),
                ("hip_runtime_version", "HIP"),
            )
            if _is_plain(self.fields.get(key))
        ]
        return clean(", ".join(parts)) or None

    @property
    def metadata(self) -> str:
        """JSON text of the kept fields."""
        kept: dict[str, Any] = {key: self.fields[key] for key in KEPT if _is_plain(self.fields.get(key))}
        for key in DISTRIBUTED:
            if key in self.distributed and key != "world_size" and _is_json(self.distributed[key]):
                kept[key] = self.distributed[key]
        return clean(json.dumps(kept, ensure_ascii=False))

    def unusable(self) -> Iterator[str]:
        """Yield the names of fields whose values are impossible."""
        fields, distributed, devices = self.fields, self.distributed, self.fields.get("deviceProperties")
        found = {
            "baseTimeNanoseconds": (fields.get("baseTimeNanoseconds"), self.base_ns),
            "distributedInfo": (fields.get("distributedInfo"), fields.get("distributedInfo") == distributed or None),
            "rank": (distributed.get("rank"), self.rank),
            "world_size": (distributed.get("world_size"), self.world_size),
            "deviceProperties": (devices, isinstance(devices, list) or None),
        }
        yield from (name for name, (given, used) in found.items() if used is None and given not in (None, "", []))
        items = devices if isinstance(devices, list) else []
        if len(self.devices) != len(items) or any(item["id"] is None for item in self.devices):
            yield "deviceProperties"


def header_of(trace: Trace, account: Account) -> Header:
    """Return the header of a trace whose events have been read.

    A header that is not valid JSON is searched for the fields in use. Raises ``ReadError`` if a second event array
    follows the first.
    """
    tail = bytes(trace.tail)
    if b'"traceEvents"' in tail and EVENTS_KEY.search(tail):
        raise ReadError("a second traceEvents array follows the first: two traces were written into one file")
    if b'"ph"' in tail and EVENT_START.search(tail):
        raise ReadError("events follow the end of the event array: several processes wrote to this file at once")
    if trace.is_bare_list:
        return Header({})
    head = trace.head.removeprefix(BOM)
    _check_ranks(head, tail)
    text = (head + b'"traceEvents": []' + (tail if trace.ended else b"}")).decode("utf-8", errors="replace")
    try:
        fields = json.loads(text, strict=False)
        return _checked({key: fields[key] for key in READ if key in fields}, account)
    except (ValueError, RecursionError):
        pass
    if trace.ended:
        account.mended(
            "header_unreadable", 1, "the header is not valid JSON; it was searched for the fields that tracedb uses"
        )
    return _checked(_searched((head + tail).decode("utf-8", errors="replace")), account)


def _checked(fields: dict[str, Any], account: Account) -> Header:
    header = Header(fields)
    for name in header.unusable():
        account.warned("header_field_unreadable", 1, "header fields with impossible values", name)
    return header


def _check_ranks(head: bytes, tail: bytes) -> None:
    """Raise ``ReadError`` if the text before and the text after the events name different ranks."""
    texts = [text for text in (head, tail) if b'"distributedInfo"' in text]
    ranks = {rank for text in texts for rank in RANK.findall(text)}
    if len(ranks) > 1:
        named = " and ".join(sorted(rank.decode() for rank in ranks))
        raise ReadError(f"the trace names the ranks {named}: several processes wrote to this file at once")


def _searched(text: str) -> dict[str, Any]:
    decoder = json.JSONDecoder(strict=False)
    found: dict[str, Any] = {}
    for key in READ:
        # A plain search first: the regular expression takes seconds on a long tail of garbage.
        place = re.search(r'(?<!\\)"' + re.escape(key) + r'"\s*:\s*', text) if f'"{key}"' in text else None
        if place is None:
            continue
        try:
            found[key], _ = decoder.raw_decode(text, place.end())
        except (ValueError, RecursionError):
            continue
    return found


def _small(value: Any) -> int | None:
    number = _int(value)
    return number if number is not None and 0 <= number < 1 << 31 else None


def _int(value: Any) -> int | None:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, str) and re.fullmatch(r"-?\d{1,19}", value.strip()):
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63 else None


def _is_plain(value: Any) -> bool:
    return isinstance(value, int | float | str) and len(str(value)) < 200 and _is_json(value)


def _is_json(value: Any) -> bool:
    """Whether a decoded value can be written as JSON: no NaN, not nested too deep."""
    try:
        json.dumps(value, allow_nan=False)
    except (ValueError, RecursionError):
        return False
    return True
