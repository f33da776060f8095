"""Run one command and measure wall time, CPU time and memory of all its processes."""

from __future__ import annotations

import itertools
import os
import platform
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

LOOK_SECONDS = 0.05
SUM_EVERY = 5
"""Memory is summed over processes in one of this many samples, because that walks their page tables and stalls them."""
AGAINST_CACHES = ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED")


@dataclass(frozen=True)
class Measured:
    """Time and memory of one run of a command."""

    wall_seconds: float
    cpu_seconds: float
    peak_bytes: int
    """Maximum resident set size of the command's own process or, if larger, maximum sum over its processes, in bytes.

    The sum is of proportional set sizes, sampled at intervals.
    """
    exit_code: int
    stderr: str


def run(command: Sequence[str], environment: dict[str, str] | None = None) -> Measured:
    """Run a command and discard its output. Linux only: memory is read from /proc.

    Environment settings that stop Python from caching compiled modules are removed, because an installed program has
    them cached and every run would compile them again.
    """
    kept = {key: value for key, value in os.environ.items() if key not in AGAINST_CACHES}
    started = time.perf_counter()
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env={**kept, **(environment or {})}
    )
    peaks, is_over = [0], threading.Event()
    looking = threading.Thread(target=_look, args=(process.pid, peaks, is_over), daemon=True)  # Ctrl-C ends it, too
    looking.start()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    is_over.set()
    looking.join()
    peak = max(peaks)  # the usage's own would count this process, too, as it was when it began the other
    cpu = usage.ru_utime + usage.ru_stime
    assert process.stderr is not None
    return Measured(wall, cpu, peak, process.returncode, process.stderr.read().decode(errors="replace"))


def _look(pid: int, peaks: list[int], is_over: threading.Event) -> None:
    """Sample the memory of a process and its children at intervals."""
    for number in itertools.count():
        if is_over.wait(LOOK_SECONDS):
            return
        peaks.append(_largest(pid))
        if number % SUM_EVERY == 0:
            peaks.append(sum(_pss(each) for each in _tree(pid)))


def machine() -> str:
    """Return processor, cores, memory and system in one line."""
    model = next(
        (line.split(":", 1)[1].strip() for line in _lines(Path("/proc/cpuinfo")) if line.startswith("model name")),
        platform.processor(),
    )
    total = next((int(line.split()[1]) for line in _lines(Path("/proc/meminfo")) if line.startswith("MemTotal")), 0)
    return f"{model}, {os.cpu_count()} cores, {total / 1e6:.0f} GB, {platform.system()} {platform.machine()}"


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []


def _tree(root: int) -> list[int]:
    """Return ``root`` and its descendants."""
    found = [root]
    for pid in found:
        for line in _lines(Path(f"/proc/{pid}/task/{pid}/children")):
            found.extend(int(child) for child in line.split())
    return found


def _largest(pid: int) -> int:
    """Return the maximum resident set size that a process has had, in bytes."""
    lines = (line for line in _lines(Path(f"/proc/{pid}/status")) if line.startswith("VmHWM:"))
    return next((int(line.split()[1]) << 10 for line in lines), 0)


def _pss(pid: int) -> int:
    for line in _lines(Path(f"/proc/{pid}/smaps_rollup")):
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return 0
