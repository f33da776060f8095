"""Build rows of the small tables that every ingester fills, with the types of the schema.

Columns that are not given are left out; the pipeline sets them to NULL.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

from tracedb.ingester.issues import Account
from tracedb.storage import schema


@dataclass(frozen=True)
class Device:
    """A GPU of a capture; None if a property was not recorded."""

    device_id: int
    is_used: bool
    vendor: str | None = None
    name: str | None = None
    sm_count: int | None = None
    max_clock_mhz: int | None = None
    memory_bytes: int | None = None
    uuid: str | None = None
    arch: str | None = None


@dataclass(frozen=True)
class CaptureRow:
    """What an ingester knows of a capture; None if something was not recorded.

    ``events_read`` is ``events_skipped`` plus the events that gave a row. ``source``: if it differs from the
    ingester's name.
    """

    status: str
    events_read: int
    events_skipped: int
    rows_written: int
    host: str | None = None
    pid: int | None = None
    rank: int | None = None
    world_size: int | None = None
    tool_version: str | None = None
    clock_zero_unix_ns: int | None = None
    metadata: str | None = None
    source: str | None = None


def device_rows(rows: Iterable[Device]) -> pa.Table:
    """Return rows of ``device``."""
    return _table("device", Device.__annotations__, [asdict(row) for row in rows])


def capture_row(row: CaptureRow) -> pa.Table:
    """Return the row of ``capture``."""
    values = asdict(row)
    if row.source is None:
        del values["source"]
    return _table("capture", values, [values])


def issue_rows(account: Account) -> pa.Table:
    """Return the lines of an account as rows of ``ingest_issue``."""
    rows = [
        {
            "code": code,
            "severity": issue.severity,
            "count": issue.count,
            "skipped": issue.skipped,
            "detail": issue.text,
        }
        for code, issue in account.issues.items()
    ]
    return _table("ingest_issue", ("code", "severity", "count", "skipped", "detail"), rows)


def _table(name: str, columns: Iterable[str], rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Return rows of a schema table with the given columns. Raises KeyError for a column that the table lacks."""
    declared = schema.arrow(name)
    return pa.table(
        {column: pa.array([row[column] for row in rows], declared.field(column).type) for column in columns}
    )
