"""How the tests use the machine: workers, and where temporary files are kept."""

from __future__ import annotations

import os
from collections import namedtuple
from pathlib import Path

import pytest

from support import machine
from support.machine import GB

Usage = namedtuple("Usage", "total used free")


@pytest.mark.parametrize(
    ("cores", "available", "expected"),
    [(2, 20 * GB, 3), (64, 500 * GB, 65), (8, 6 * GB, 4), (8, 1 * GB, 2), (1, 1 * GB, 1), (8, 0, 8)],
    ids=["one more than cores", "many cores", "as many as fit", "at least two", "one core", "unknown memory"],
)
def test_workers_use_cores_and_fit_into_memory(
    monkeypatch: pytest.MonkeyPatch, cores: int, available: int, expected: int
) -> None:
    monkeypatch.setattr(machine, "memory_available", lambda: available)
    assert machine.workers(cores) == expected


@pytest.mark.skipif(not hasattr(os, "statvfs"), reason="this system does not tell where programs may run")
@pytest.mark.parametrize(("free", "available", "is_used"), [(8, 8, True), (1, 8, False), (8, 1, False)])
def test_files_are_kept_in_memory_where_both_have_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, available: int, is_used: bool
) -> None:
    monkeypatch.setattr(machine, "memory_available", lambda: available * GB)
    monkeypatch.setattr("shutil.disk_usage", lambda _: Usage(10 * GB, 0, free * GB))
    assert machine.folder_in_memory(tmp_path) == (tmp_path if is_used else None)
    assert machine.folder_in_memory(tmp_path / "absent") is None


def test_cached_files_of_a_container_count_as_available(monkeypatch: pytest.MonkeyPatch) -> None:
    told = {
        "/proc/meminfo": "MemFree: 1 kB\nMemAvailable:   20000000 kB\n",
        "/sys/fs/cgroup/memory.max": f"{8 * GB}\n",
        "/sys/fs/cgroup/memory.current": f"{7 * GB}\n",
        "/sys/fs/cgroup/memory.stat": f"anon 5\ninactive_file {3 * GB}\nactive_file {2 * GB}\nslab 7\n",
    }
    monkeypatch.setattr(machine, "_text", told.__getitem__)
    assert machine.memory_available() == 6 * GB
