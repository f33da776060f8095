"""Which process has a file open, by Linux's ``/proc``; and waiting for that."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def reader_of(pid: int, path: Path) -> int | None:
    """Return the process, ``pid`` or one below it, that has the file open."""
    for process in (pid, *below(pid)):
        folder = Path("/proc") / str(process) / "fd"
        try:
            opened = [str(descriptor.readlink()) for descriptor in folder.iterdir()]
        except OSError:
            continue
        if str(path) in opened:
            return process
    return None


def below(pid: int) -> Iterator[int]:
    for task in (Path("/proc") / str(pid) / "task").glob("*/children"):
        try:
            children = [int(child) for child in task.read_text().split()]
        except OSError:
            continue
        for child in children:
            yield child
            yield from below(child)


def wait_for(found: Any) -> int:
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        if (result := found()) is not None:
            return int(result)
        time.sleep(0.02)
    raise AssertionError("it did not come to that")
