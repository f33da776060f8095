"""Which GPU a device number of a process means."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import pyarrow as pa

from tracedb.ingester.rows import Device, device_rows
from tracedb_nsys.header import Header

Gpu = dict[str, Any]


def devices(header: Header, gpid: int | None, used: Iterable[int], shared: Collection[int]) -> pa.Table:
    """Return the rows of ``device`` of a process: those that it used, and those that it could see.

    CUDA numbers devices within a process; TARGET_INFO_CUDA_DEVICE says which GPU a number means. Exports before 2025
    lack it, and TARGET_INFO_GPU.cuDevice is taken; TARGET_INFO_GPU.id counts otherwise. That is a guess where processes
    were given different GPUs, so for the numbers that several processes use (``shared``), and for those that
    TARGET_INFO_CUDA_DEVICE leaves out, only what all GPUs of the machine have in common is told.
    """
    pid = (gpid >> 24) & 0xFFFFFF if gpid is not None else None
    machine = gpid & (0xFFFF << 48) if gpid is not None else None
    gpus = [gpu for gpu in header.gpus if machine is None or gpu["vmId"] in (None, machine)] or header.gpus
    busy = set(used)
    seen: dict[int, list[Gpu]] = {}
    for row in header.ordinals:
        if row["pid"] == pid:
            seen.setdefault(row["cudaId"], []).append(_named(row, gpus))
    if not header.ordinals:
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
    """Return the GPU that a row of TARGET_INFO_CUDA_DEVICE names. A slice of a GPU has a UUID and a size of its own."""
    found = next((gpu for gpu in gpus if gpu["id"] == row["gpuId"] and row["gpuId"] is not None), None)
    if found is None and row["uuid"] is not None:
        found = next((gpu for gpu in gpus if gpu["uuid"] == row["uuid"]), None)
    own = {"uuid": row["uuid"] or None, "smCount": row["numMultiprocessors"] or None}
    return {**(found or {}), **{name: value for name, value in own.items() if value is not None}}


def _common(gpus: Sequence[Gpu]) -> Gpu:
    """Return what all GPUs have in common; of none, nothing."""
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
