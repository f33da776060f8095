"""Times that a program took of itself, outside of any trace: CSV with a time per range, or per repetition.

Two layouts are read. Long: a column ``range`` (or ``phase``) and columns such as ``mean_ms``, ``std_ms`` or
``time_us``. Wide: a column per range, such as ``forward_mean_ms`` or ``Backward std (ms)``. ``n``, ``count`` or
``steps`` is the number of repetitions behind a mean; every other column is a setting of the run.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from itertools import islice
from pathlib import Path

from tracedb.errors import ReadError
from tracedb.ingester import Rows

FIRST_BYTES = 4096
MOST_FIELD = 1 << 16
BATCH = 10_000
NAMES = ("range", "phase")
COUNTS = ("n", "count", "steps", "iterations", "repetitions", "instances")
WIDE = ("forward", "backward", "optimizer", "optimizer_step", "loss", "step", "train_step", "training_step", "total")
"""Ranges that a column of the wide layout may be named after; others would claim tables of any kind."""
STATISTICS = {
    "mean": "mean", "avg": "mean", "average": "mean", "median": "median", "min": "min", "max": "max",
    "std": "stddev", "stddev": "stddev", "time": "single", "duration": "single", "dur": "single", "elapsed": "single",
    "": "single",
}  # fmt: skip
UNITS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000, "sec": 1_000_000_000, "seconds": 1_000_000_000}
TIME = re.compile(
    rf"(?:(?P<name>[a-z0-9_]+?)_)??(?:(?P<statistic>{'|'.join(filter(None, STATISTICS))})_)?(?P<unit>{'|'.join(UNITS)})"
)
LONGEST_NS = Decimal(10) ** 18


Entry = tuple[int, dict[str, object] | None, str]
"""Number of a line, the row of a time or None, and why there is none."""


@dataclass
class Layout:
    """The columns of a file. ``times``: column → range (None in the long layout), statistic, ns per unit."""

    name: str | None = None
    count: str | None = None
    times: dict[str, tuple[str | None, str, int]] = field(default_factory=dict)
    settings: list[str] = field(default_factory=list)


def layout_of(line: str) -> Layout | None:
    """Return the layout of a file of measured times, or None if the line is not its header."""
    columns = next(csv.reader([line.strip()]), [])
    if len(set(columns)) < len(columns) or any("%" in column for column in columns):
        return None
    layout = Layout(name=next((column for column in columns if column.strip().lower() in NAMES), None))
    for column in columns:
        plain = re.sub(r"[^a-z0-9]+", "_", column.lower()).strip("_")
        time = TIME.fullmatch(plain)
        if column == layout.name or not plain:
            continue
        if time is not None:
            if (time["name"] is None) != (layout.name is not None) or (time["name"] or WIDE[0]) not in WIDE:
                return None
            layout.times[column] = time["name"], STATISTICS[time["statistic"] or ""], UNITS[time["unit"]]
        elif plain in COUNTS and layout.count is None:
            layout.count = column
        else:
            layout.settings.append(column)
    return layout if layout.times else None


def header(path: Path) -> Layout | None:
    """Return the layout of a CSV file of measured times; None for any other or unreadable file."""
    if path.suffix.lower() != ".csv":
        return None
    try:
        with path.open("rb") as file:
            return layout_of(file.readline(FIRST_BYTES).decode("utf-8-sig", errors="replace"))
    except (OSError, csv.Error):
        return None


def read(path: Path) -> Iterator[Rows]:
    """Yield the measured times of a file, then its account. Raises ``ReadError`` if its header has changed."""
    import pyarrow as pa

    from tracedb.ingester.issues import Account
    from tracedb.ingester.rows import CaptureRow, capture_row, issue_rows
    from tracedb.storage import schema

    layout = header(path)
    if layout is None:
        raise ReadError("its first line is no longer that of a file of measured times")
    account = Account()
    kind = schema.arrow("measure")
    entries = _entries(path, layout)
    good = 0
    while batch := list(islice(entries, BATCH)):
        sound = [{**row, "measure_id": place} for place, row in enumerate(_sound(batch), good + 1)]
        good += len(sound)
        for line, row, why in batch:
            account.lost("line_unreadable", row is None, "times that cannot be used", place=f"line {line} {why}")
        yield Rows("measure", pa.Table.from_pylist(sound, schema=kind))
    yield Rows("ingest_issue", issue_rows(account))
    status = "repaired" if account.skipped else "no_gpu_activity"
    yield Rows(
        "capture", capture_row(CaptureRow(status, good + account.skipped, account.skipped, good, source="measure"))
    )


def _sound(batch: Sequence[Entry]) -> Iterator[dict[str, object]]:
    return (row for _, row, _ in batch if row is not None)


def _entries(path: Path, layout: Layout) -> Iterator[Entry]:
    """Yield line number, row and reason for each time; the row is None if it cannot be used."""
    csv.field_size_limit(MOST_FIELD)
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        reader = csv.DictReader((line.replace("\0", "\N{REPLACEMENT CHARACTER}") for line in file), restkey="")
        while True:
            try:
                record = next(reader, None)
            except csv.Error as error:
                yield reader.line_num, None, str(error)
                continue
            if record is None:
                return
            for column in layout.times:
                row, why = _row(record, layout, column)
                if row is not None or why:
                    yield reader.line_num, row, why


def _row(record: dict[str, str | None], layout: Layout, column: str) -> tuple[dict[str, object] | None, str]:
    """Return the row of a time, or None and why there is none; an empty field is no time and no fault."""
    name, statistic, unit = layout.times[column]
    text = (record.get(column) or "").strip()
    if not text or text.lower() in ("nan", "null", "none", "n/a", "-"):
        return None, ""
    name = name if layout.name is None else (record.get(layout.name) or "").strip()
    if "" in record:
        return None, "has more fields than the header"
    if not name:
        return None, "names no range"
    try:
        time = Decimal(text) * unit
    except InvalidOperation:
        return None, f"{column} is {text[:40]!r}, no number"
    if not time.is_finite() or not 0 <= time < LONGEST_NS:
        return None, f"{column} is {text[:40]!r}, no time"
    count = (record.get(layout.count) or "").strip() if layout.count else ""
    settings = {key.strip(): (record.get(key) or "").strip() for key in layout.settings}
    return {
        "name": name,
        "statistic": statistic,
        "time_ns": int(time.to_integral_value()),
        "n": int(count) if count.isdecimal() and len(count) < 10 else None,
        "settings": {key: value for key, value in settings.items() if key and value},
    }, ""


def find(files: Sequence[Path]) -> list[Path]:
    """Return the files of measured times."""
    return [path for path in files if header(path) is not None]
