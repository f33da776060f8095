"""Units of columns: declared at the end of a column's comment as ``[ns]``, else implied by the column's name."""

from __future__ import annotations

import re

UNITS = (
    *("ns", "µs", "ms", "bytes", "MB", "percent", "ppm", "ratio", "probability", "count", "cycles"),
    *("blocks", "threads", "MHz", "GB/s", "FLOP", "TFLOP/s", "s", "W", "J", "°C"),
)
"""The units that a comment may declare."""
NO_UNIT = "-"
"""Declared for numbers without a unit: identifiers, positions, values with their unit in another column."""
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
    """Return a comment without the declaration at its end, and the unit; None if none is declared."""
    found = _DECLARED.search(comment)
    if found is None or found[1] not in (*UNITS, NO_UNIT):
        return comment, None
    return comment[: found.start()], found[1]


def by_name(name: str) -> str | None:
    """Return the unit implied by a column's name, for SQL typed by a user; None if there is none."""
    suffixes = (unit for suffix, unit in _SUFFIXES if name.endswith(suffix))
    return _NAMES.get(name) or next(suffixes, None)
