"""What is read of a GPU, and who can read it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Gpu:
    """A GPU as programs number it (``CUDA_VISIBLE_DEVICES`` and its like are followed)."""

    device_id: int
    vendor: str
    name: str | None = None
    uuid: str | None = None


@dataclass(frozen=True)
class Reading:
    """The state of a GPU at a moment; None where it cannot be read. ``throttle``: reasons joined by commas, or none."""

    device_id: int
    unix_ns: int
    sm_clock_mhz: float | None = None
    memory_clock_mhz: float | None = None
    power_w: float | None = None
    temperature_c: float | None = None
    throttle: str | None = None


@dataclass(frozen=True)
class Limits:
    """What a GPU may not exceed; None where it cannot be read."""

    power_w: float | None = None
    sm_clock_mhz: float | None = None


class Reader(Protocol):
    """Reads the GPUs of this machine through the vendor's library."""

    gpus: list[Gpu]

    def read(self, gpu: Gpu) -> Reading:
        """Return the state of a GPU now. Takes about a millisecond and must not raise."""
        ...

    def limits(self, gpu: Gpu) -> Limits:
        """Return the limits that a GPU has now. Must not raise."""
        ...


class Unavailable(Exception):
    """The GPUs cannot be read; its text says why, and what to install."""


def open_reader() -> Reader:
    """Return the first reader that finds a GPU: NVML, then amdsmi. Raises ``Unavailable``."""
    from tracedb.conditions import amd, nvml

    reasons = []
    for kind in (nvml.NvmlReader, amd.AmdReader):
        try:
            return kind()
        except Unavailable as error:
            reasons.append(str(error))
    raise Unavailable("; ".join(reasons))


def visible(numbers: dict[str, int], said: str | None) -> list[int]:
    """Return the GPUs that a program sees, in its order, by a text such as ``2,0`` or ``GPU-1b9f…``.

    ``numbers``: UUID → number on this machine. As CUDA does it, the list ends at the first entry that names no GPU.
    """
    everything = sorted(numbers.values())
    if said is None:
        return everything
    found: list[int] = []
    for entry in (part.strip() for part in said.split(",")):
        if entry.isdecimal():
            matching = [int(entry)] if int(entry) in everything else []
        else:
            matching = [number for uuid, number in numbers.items() if entry and uuid.lower().startswith(entry.lower())]
        if len(matching) != 1:
            break
        found += matching
    return found
