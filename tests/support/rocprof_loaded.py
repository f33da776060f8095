"""What the ROCm ingester gives for files, checked as every reading must be."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from support.readings import Reading, as_dicts, check, instance
from tracedb.ingester import Capture, Options
from tracedb_rocprof import ingester

__all__ = ["Reading", "captures", "names", "read", "read_capture"]


def captures(*paths: Path) -> list[Capture]:
    """Return the captures among files and below folders."""
    files = [path for given in paths for path in (sorted(given.rglob("*")) if given.is_dir() else [given])]
    return list(ingester.find([path for path in files if path.is_file()]))


def read(*paths: Path, cores: int = 1) -> Reading:
    """Read the only capture among the files."""
    (capture,) = captures(*paths)
    return read_capture(capture, cores)


def read_capture(capture: Capture, cores: int = 1) -> Reading:
    """Read a capture."""
    reading = Reading()
    with instance().cursor() as scratch:
        for rows in ingester.read(capture, scratch, Options(cores=cores)):
            reading.tables.setdefault(rows.table, []).extend(as_dicts(rows))
    check(reading)
    return reading


def names(reading: Reading) -> Sequence[str]:
    """Return the names of the kernels in the order of their starts."""
    found: list[str] = reading.kernels("name")
    return found
