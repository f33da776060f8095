"""Map a process's device numbers to GPUs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import pyarrow as pa

from tracedb.ingester.rows import Device, device_rows
from tracedb_nsys.header import Header

Gpu = dict[str, Any]


def devices(header: Header, gpid: int | None, used: Iterable[int], shared: Collection[int]) -> pa.Table:
    """Return the ``device`` rows of a process: the GPUs that it used and those visible to it.

    CUDA numbers devices per process; TARGET_INFO_CUDA_DEVICE maps a number to a GPU. Exports before 2025 lack it, so
    TARGET_INFO_GPU.cuDevice is used, else TARGET_INFO_GPU.id. That is a guess if processes were given different GPUs,
    so for numbers that several processes use (``shared``), and for those missing from TARGET_INFO_CUDA_DEVICE, only the
    properties common to all GPUs of the machine are stored.
    """
    pid = (gpid >> 24) & 0xFFFFFF if gpid is not None else None
    machine = gpid & (0xFFFF << 48) if gpid is not None else None
    gpus = [gpu for gpu in header.gpus if machine is None or gpu["vmId"] in (None, machine)] or header.gpus
    busy = set(used)
    seen: dict[int, list[Gpu]] = {}
    for row in header.device_numbers:
        if row["pid"] == pid:
            seen.setdefault(row["cudaId"], []).append(_named(row, gpus))
    if not header.device_numbers:
        for gpu in gpus:
            if gpu["cuDevice"] is not None:
                seen.setdefault(gpu["cuDevice"], []).append(gpu)
        seen.update((number, gpus) for number in busy.intersection(shared))
    if len(gpus) > 1 or len(busy) == 1:
        seen.update((number, gpus) for number in busy.difference(seen))
    return device_rows(
        _device(number, _common(seen.get(number, [])), number in busy) for number in sorted({*busy, *seen})
    )


def _named(row: Gpu, gpus: Sequence[Gpu]) -> Gpu:
    """Return the GPU that a row of TARGET_INFO_CUDA_DEVICE names. A MIG slice has a UUID and size of its own."""
    found = next((gpu for gpu in gpus if gpu["id"] == row["gpuId"] and row["gpuId"] is not None), None)
    if found is None and row["uuid"] is not None:
        found = next((gpu for gpu in gpus if gpu["uuid"] == row["uuid"]), None)
    own = {"uuid": row["uuid"] or None, "smCount": row["numMultiprocessors"] or None}
    return {**(found or {}), **{name: value for name, value in own.items() if value is not None}}


def _common(gpus: Sequence[Gpu]) -> Gpu:
    """Return the properties common to all GPUs; none if there is no GPU."""
    first, *others = gpus or [{}]
    return {name: value for name, value in first.items() if all(gpu.get(name) == value for gpu in others)}


def _device(number: int, gpu: Gpu, is_used: bool) -> Device:
    major, minor = gpu.get("computeMajor"), gpu.get("computeMinor")
    return Device(
        device_id=number,
        is_used=is_used,
        vendor="NVIDIA",
        name=gpu.get("name") or None,
        sm_count=gpu.get("smCount") or None,
        memory_bytes=gpu.get("totalMemory") or None,
        uuid=gpu.get("uuid") or None,
        arch=f"sm_{major}{minor}" if major and minor is not None else None,
    )
