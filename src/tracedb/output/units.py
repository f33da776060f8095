"""Units of columns: declared at the end of a column's comment as ``[ns]``, else told by the column's name."""

from __future__ import annotations

import re

UNITS = (
    *("ns", "µs", "ms", "bytes", "MB", "percent", "ppm", "ratio", "probability", "count", "cycles"),
    *("blocks", "threads", "MHz", "GB/s", "FLOP", "TFLOP/s"),
)
"""The units that a comment may declare."""
NO_UNIT = "-"
"""Declared by numbers that have no unit: identifiers, places in an order, values in a unit of their own."""
_DECLARED = re.compile(r"\s*\[([^\[\]\s]+)\]$")
_SUFFIXES = (
    ("_ns", "ns"),
    ("_percent", "percent"),
    ("_bytes", "bytes"),
    ("_gbps", "GB/s"),
    ("_calls", "count"),
    ("_elements", "count"),
    ("_instances", "count"),
)
_NAMES = {
    "bytes": "bytes",
    "calls": "count",
    "instances": "count",
    "gpu_ops": "count",
    "count": "count",
    "calls_per_step": "count",
    "slowdown": "ratio",
}


def declared(comment: str) -> tuple[str, str | None]:
    """Return a comment without the declaration at its end, and the unit; None where nothing is declared."""
    found = _DECLARED.search(comment)
    if found is None or found[1] not in (*UNITS, NO_UNIT):
        return comment, None
    return comment[: found.start()], found[1]


def by_name(name: str) -> str | None:
    """Return the unit that a column's name tells, as in SQL typed by a user; None if it tells none."""
    suffixes = (unit for suffix, unit in _SUFFIXES if name.endswith(suffix))
    return _NAMES.get(name) or next(suffixes, None)
