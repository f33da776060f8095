"""Records of a CSV file of Nsight Compute, in either layout, as results (kernels) and their metrics.

Wide (``--page raw``): a row per kernel, a column per metric, and a row of units below the header. Long (the default, or
``--metrics``): a row per metric, with its unit. Both may follow lines that ncu or the program printed.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

SUFFIXES = (".csv", ".txt", ".log")
FIRST_BYTES = 1 << 16
"""The header is looked for in this much of a file."""
MOST_FIELD = 1 << 20
IDENTITY = ("ID", "Process ID", "Kernel Name", "Context", "Stream", "Block Size", "Grid Size", "Device", "CC")
OTHERS = ("Process Name", "Host Name", "Section Name", "Metric Name", "Metric Unit", "Metric Value", "Rule Name")
NO_METRICS = ("device__", "numa__", "nvlink__", "c2clink__")
"""Prefixes of columns that describe the machine, not the kernel."""
NUMBER = re.compile(r"[-+]?(\d{1,3}(,\d{3})+|\d+)(\.\d+)?(e[-+]?\d+)?", re.IGNORECASE)
PREFIXES = {"K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
TIMES = {
    "nsecond": 1.0, "usecond": 1e3, "msecond": 1e6, "second": 1e9, "ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9,
}  # fmt: skip


@dataclass(frozen=True)
class Metric:
    """A metric of a result, in its base unit: byte, ns, hz or as written; ``value`` is None if it is no number."""

    name: str
    value: float | None
    text: str


@dataclass(frozen=True)
class Record:
    """A row of the file: a result, or one metric of it, and why it cannot be used, if so."""

    line: int
    identity: dict[str, str]
    metrics: Sequence[Metric]
    fault: str = ""


def header_line(path: Path) -> int | None:
    """Return the number of the header's line, from 0; None for any other or unreadable file."""
    if path.suffix.lower() not in SUFFIXES:
        return None
    try:
        with path.open("rb") as file:
            lines = file.read(FIRST_BYTES).decode("utf-8-sig", errors="replace").splitlines()
    except OSError:
        return None
    return next((place for place, line in enumerate(lines) if _is_header(line)), None)


def _is_header(line: str) -> bool:
    return line.startswith(('"ID","Process ID",', "ID,Process ID,")) and "Kernel Name" in line


def records(path: Path, skipped: int) -> Iterator[Record]:
    """Yield the records after the header, which follows ``skipped`` lines, with bounded memory."""
    csv.field_size_limit(MOST_FIELD)
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        for _ in range(skipped):
            file.readline()
        reader = csv.reader(line.replace("\0", "\N{REPLACEMENT CHARACTER}") for line in file)
        header = next(reader, [])
        is_long = "Metric Name" in header
        units: dict[str, str] = {}
        while True:
            try:
                row = next(reader, None)
            except csv.Error as error:
                yield Record(skipped + reader.line_num, {}, (), str(error))
                continue
            if row is None:
                return
            line = skipped + reader.line_num
            if not row or row[0].startswith("=="):
                continue
            if len(row) != len(header):
                yield Record(line, {}, (), f"has {len(row)} fields, the header {len(header)}")
                continue
            found = dict(zip(header, row, strict=True))
            if not found["ID"].strip() and not is_long:
                units = found
                continue
            yield _record(line, found, units, is_long)


def _record(line: int, found: dict[str, str], units: dict[str, str], is_long: bool) -> Record:
    identity = {name: found.get(name, "").strip() for name in IDENTITY}
    if not identity["ID"].isdecimal() or not identity["Kernel Name"]:
        return Record(line, {}, (), "has no ID or no kernel name")
    if is_long:
        name = found["Metric Name"].strip()
        metrics = [metric(name, found.get("Metric Value", ""), found.get("Metric Unit", ""))] if name else []
    else:
        metrics = [
            metric(name, text, units.get(name, ""))
            for name, text in found.items()
            if name not in IDENTITY and name not in OTHERS and text.strip()
        ]
    return Record(line, identity, metrics)


def metric(name: str, text: str, unit: str) -> Metric:
    """Return a metric in its base unit. ncu writes thousands with commas and scales units by default (``Kbyte``)."""
    plain = text.strip()
    if NUMBER.fullmatch(plain) is None:
        return Metric(name, None, plain)
    return Metric(name, float(plain.replace(",", "")) * scale(unit.strip()), plain)


def scale(unit: str) -> float:
    """Return the factor from a unit to its base unit: byte, ns, hz; 1 for any other."""
    if unit in TIMES:
        return TIMES[unit]
    is_scaled = re.match(r"[KMGT](byte|hz|bit)", unit, re.IGNORECASE)
    return PREFIXES[unit[0].upper()] if is_scaled else 1.0


def sizes(text: str) -> tuple[int, int, int] | None:
    """Return three sizes from text such as ``(256, 1, 1)``."""
    found = re.fullmatch(r"\(?\s*(\d{1,10})\s*,\s*(\d{1,10})\s*,\s*(\d{1,10})\s*\)?", text)
    return None if found is None else (int(found[1]), int(found[2]), int(found[3]))
