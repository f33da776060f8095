"""The wall time of a pass measured without a profiler: a duration, or a CSV file that a runner wrote."""

from __future__ import annotations

import csv
import math
import re
import statistics
from dataclasses import dataclass
from pathlib import Path

from tracedb.errors import TracedbError, UsageError

_UNITS = {"ns": 1.0, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9}
_DURATION = re.compile(r"([0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?)\s*(ns|us|µs|ms|s)")
MOST_BYTES = 64 << 20


@dataclass(frozen=True)
class MeasuredPass:
    """Median wall time of a pass, and its energy if that was measured."""

    nanoseconds: float
    joules: float | None
    source: str


def read(text: str, name: str | None) -> MeasuredPass:
    """Return a duration such as ``12.5ms``, or the median of a CSV file's rows.

    The file has a column ``duration_ns`` or ``duration_s``, and may have ``range`` (the pass; with ``name``, only
    rows of this pattern count) and ``joules``. Raises ``UsageError`` if the text is neither, ``TracedbError`` if the
    file does not say a duration.
    """
    found = _DURATION.fullmatch(text.strip())
    if found is not None:
        return MeasuredPass(float(found[1]) * _UNITS[found[2]], None, text.strip())
    path = Path(text)
    if not path.is_file():
        raise UsageError(f"--measured {text}: expected a duration such as 12.5ms, or a CSV file with duration_s")
    return _of_file(path, name)


def _of_file(path: Path, name: str | None) -> MeasuredPass:
    from fnmatch import fnmatchcase

    try:
        if path.stat().st_size > MOST_BYTES:
            raise TracedbError(f"{path}: has {path.stat().st_size:,} bytes; expected a CSV file of measured times")
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise TracedbError(f"{path}: cannot be read as CSV: {error}") from error
    column = next((key for key in ("duration_ns", "duration_s") if rows and key in rows[0]), None)
    if column is None:
        raise TracedbError(f"{path}: has no column duration_ns or duration_s; expected one row per measured pass")
    wanted = [row for row in rows if name is None or "range" not in row or fnmatchcase(row["range"] or "", name)]
    if not wanted:
        raise TracedbError(f"{path}: no row has a range that matches {name!r}")
    factor = 1.0 if column == "duration_ns" else 1e9
    times = [_number(path, row[column]) * factor for row in wanted]
    joules = [_number(path, row["joules"]) for row in wanted if row.get("joules")]
    return MeasuredPass(statistics.median(times), statistics.mean(joules) if joules else None, path.name)


def _number(path: Path, text: str | None) -> float:
    try:
        found = float(text or "")
    except ValueError as error:
        raise TracedbError(f"{path}: {text!r} is not a number") from error
    if not math.isfinite(found) or found < 0:
        raise TracedbError(f"{path}: {text!r} is no duration or energy")
    return found
