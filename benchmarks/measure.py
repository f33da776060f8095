"""Running one command and measuring it as a whole: wall time, CPU time and memory of all its processes."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

POLL_SECONDS = 0.1
"""Each look walks the page tables of the process, on a core that what is measured would use."""
AGAINST_CACHES = ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED")


@dataclass(frozen=True)
class Measured:
    """What one run of a command took."""

    wall_seconds: float
    cpu_seconds: float
    peak_bytes: int
    """Largest sum, over the command's processes at one time, of the memory that is theirs (proportional set size)."""
    exit_code: int
    stderr: str


def run(command: Sequence[str], environment: dict[str, str] | None = None) -> Measured:
    """Run a command with its output thrown away. Linux only: memory is read from /proc.

    Python may keep the compiled form of its modules, as it does where a program is installed: settings of this
    environment against that would have every run compile them anew.
    """
    kept = {key: value for key, value in os.environ.items() if key not in AGAINST_CACHES}
    started = time.perf_counter()
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env={**kept, **(environment or {})}
    )
    peak = 0
    before = os.times()
    while process.poll() is None:
        peak = max(peak, sum(_pss(pid) for pid in _tree(process.pid)))
        time.sleep(POLL_SECONDS)
    wall = time.perf_counter() - started
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    assert process.stderr is not None
    return Measured(wall, cpu, peak, process.returncode, process.stderr.read().decode(errors="replace"))


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


def _pss(pid: int) -> int:
    for line in _lines(Path(f"/proc/{pid}/smaps_rollup")):
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return 0
