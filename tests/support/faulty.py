"""Malformed events among sound kernels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from support.readings import Reading, read
from support.traces import Event, Raw, frame, kernel, window_end, write

KERNELS = [("k0", 10_000, 5_000), ("k1", 20_000, 5_000), ("k2", 30_000, 5_000)]


def around(bad: Sequence[Event | bytes], end: bool = True) -> list[Event | bytes]:
    """Three kernels among bad events: the first, one after each kernel in turn, the last at the end."""
    good = [kernel(start // 1000, dur // 1000, name) for name, start, dur in KERNELS]
    events: list[Event | bytes] = []
    for place, event in enumerate(bad):
        events.append(event)
        events.extend(good[place : place + 1])
    return [*events, *good[len(bad) :], *([window_end()] if end else [])]


def read_around(folder: Path, *bad: Event | bytes, layout: str = "native", end: bool = True) -> Reading:
    return read(write(folder / "x.json", around(bad, end), layout), stacks=True)


def quoted(text: str) -> Raw:
    """A text as a writer puts it down that escapes nothing."""
    return Raw(f'"{text}"')


def frames(names: Sequence[str]) -> list[Event]:
    """A Python function of each name, at 200, 201, …"""
    return [frame(200 + place, 2, quoted(name)) for place, name in enumerate(names)]
