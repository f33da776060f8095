"""What the machine that runs the tests offers: memory for temporary files, and cores and memory for workers."""

from __future__ import annotations

import os
import re
import shutil
from contextlib import suppress
from pathlib import Path

GB = 1_000_000_000
WORKER = GB
"""Bytes of memory that the process of a worker takes near the end of the suite, rounded up."""

GROUP = "/sys/fs/cgroup"
"""Where a container finds its limits."""
FILES = 4 * GB
"""Bytes that must be free for temporary files to be kept in memory. Those of a whole run stay below half of it."""


def folder_in_memory(shared: Path = Path("/dev/shm")) -> Path | None:
    """Return a folder whose files are kept in memory; None if there is none with enough room.

    A database is flushed to a disk each time it is closed, which takes a seventh of the time of the tests.
    """
    with suppress(OSError, AttributeError):  # AttributeError: Windows
        runs_programs = not os.statvfs(shared).f_flag & os.ST_NOEXEC  # tests write some, and start them
        room = min(shutil.disk_usage(shared).free, memory_available())
        if runs_programs and room >= FILES and os.access(shared, os.W_OK):
            return shared
    return None


def workers(cores: int) -> int:
    """Return how many processes should run tests: one more than cores, since tests wait for processes and files.

    Fewer where memory does not suffice, but two if there are two cores; no more than cores where the system does not
    tell.
    """
    available = memory_available()
    return max(min(cores, 2), min(cores + 1, (available - FILES // 2) // WORKER)) if available else cores


def memory_available() -> int:
    """Return the bytes of memory that this process and others of its container may still use; 0 if unknown."""
    found = re.search(r"^MemAvailable:\s+(\d+) kB", _text("/proc/meminfo"), re.MULTILINE)
    available = int(found[1]) * 1024 if found else 0
    limit, used = _text(f"{GROUP}/memory.max").strip(), _text(f"{GROUP}/memory.current").strip()
    # Cached files count as used, until something else needs their memory.
    cached = sum(int(size) for size in re.findall(r"^(?:in)?active_file (\d+)", _text(f"{GROUP}/memory.stat"), re.M))
    return min(available, int(limit) - int(used) + cached) if limit.isdecimal() and used.isdecimal() else available


def _text(path: str) -> str:
    with suppress(OSError):
        return Path(path).read_text()
    return ""
