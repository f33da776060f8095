"""Files of ``tracedb watch``: clocks, power and temperature of the GPUs while a command ran."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracedb.conditions.file import COLUMNS, MARK, VERSION
from tracedb.errors import ReadError
from tracedb.ingester import Rows

if TYPE_CHECKING:  # a folder is looked at without Arrow and DuckDB, which take long to import
    import pyarrow as pa

    from tracedb.ingester.rows import Device

FIRST_BYTES = 1 << 16
LONGEST_LINE = 1 << 12
BATCH = 50_000
SOURCE = "conditions"
NUMBERS = ("sm_clock_mhz", "memory_clock_mhz", "power_w", "temperature_c")
MISSING = "no_conditions"


def is_conditions(path: Path) -> bool:
    """Whether a file was written by ``tracedb watch``."""
    try:
        with path.open("rb") as file:
            return file.read(len(MARK)) == MARK.encode()
    except OSError:
        return False


def read(path: Path) -> Iterator[Rows]:
    """Yield the readings, the GPUs and the counts. Raises ``ReadError`` if the first lines are not of such a file."""
    from tracedb.ingester.issues import Account
    from tracedb.ingester.rows import CaptureRow, capture_row, device_rows, issue_rows

    account = Account()
    written = unreadable = 0
    with path.open("rb") as file:
        about = _about(file.readline(FIRST_BYTES))
        columns = file.readline(LONGEST_LINE).decode(errors="replace").strip().split(",")
        if missing := [name for name in ("device_id", "unix_ns") if name not in columns]:
            raise ReadError(f"its second line names no column {' and '.join(missing)}; expected {','.join(COLUMNS)}")
        lines = (line for line in iter(lambda: file.readline(LONGEST_LINE), b"") if line.strip())
        while batch := list(islice(lines, BATCH)):
            rows = [_row(columns, line) for line in batch]
            sound = [row for row in rows if row is not None]
            unreadable += len(rows) - len(sound)
            written += len(sound)
            yield Rows("device_condition", _table(sound))
    yield Rows("device", device_rows(_devices(about)))
    account.lost("line_unreadable", unreadable, "readings with fields missing or that are no numbers")
    if not written:
        why = about.get("missing")
        account.noted(MISSING, 1, f"the file has no readings{f': {why}' if isinstance(why, str) else ''}")
    yield Rows("ingest_issue", issue_rows(account))
    host = about.get("host")
    yield Rows(
        "capture",
        capture_row(
            CaptureRow(
                status="repaired" if unreadable else "complete" if written else "no_gpu_activity",
                events_read=written + unreadable,
                events_skipped=unreadable,
                rows_written=written,
                host=host if isinstance(host, str) else None,
                tool_version=f"tracedb watch {VERSION}",
                clock_zero_unix_ns=0,
                source=SOURCE,
            )
        ),
    )


def _about(line: bytes) -> dict[str, Any]:
    try:
        about = json.loads(line.decode(errors="replace").removeprefix(MARK))
    except ValueError as error:
        raise ReadError(f"its first line is damaged ({error}); expected {MARK!r} and JSON") from error
    if not isinstance(about, dict) or about.get("version") != VERSION:
        found = about.get("version") if isinstance(about, dict) else about
        raise ReadError(f"is of version {found!r} of this format, expected {VERSION}; update tracedb")
    return about


def _devices(about: dict[str, Any]) -> Iterator[Device]:
    from tracedb.ingester.rows import Device

    gpus = about.get("gpus")
    seen = set()
    for gpu in gpus if isinstance(gpus, list) else []:
        number = gpu.get("device_id") if isinstance(gpu, dict) else None
        if isinstance(number, int) and 0 <= number < 2**31 and number not in seen:
            seen.add(number)
            vendor, name, uuid = (
                value if isinstance(value := gpu.get(key), str) else None for key in ("vendor", "name", "uuid")
            )
            yield Device(number, is_used=False, vendor=vendor, name=name, uuid=uuid)


def _row(columns: list[str], line: bytes) -> dict[str, object] | None:
    """Return a reading; None if a field is missing or no number."""
    fields = line.decode(errors="replace").rstrip("\r\n").split(",")
    if len(fields) != len(columns) or not line.endswith(b"\n"):
        return None
    said = dict(zip(columns, fields, strict=True))
    try:
        row: dict[str, object] = {"device_id": int(said["device_id"]), "time_ns": int(said["unix_ns"])}
        for name in NUMBERS:
            value = float(said[name]) if said.get(name) else None
            if value is not None and not math.isfinite(value):
                return None
            row[name] = value
    except ValueError:
        return None
    throttle = said.get("throttle")
    row["throttle"] = throttle.replace("|", ",") if throttle else None
    if not (0 <= int(said["device_id"]) < 2**31 and abs(int(said["unix_ns"])) < 2**62):
        return None
    return row


def _table(rows: list[dict[str, object]]) -> pa.Table:
    import pyarrow as pa

    from tracedb.storage import schema

    declared = schema.arrow("device_condition")
    return pa.table({field.name: pa.array([row[field.name] for row in rows], field.type) for field in declared})
