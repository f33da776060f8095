"""What the torch ingester gives for one file, and what must hold for every reading."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import duckdb

from tracedb.ingester import Capture, Options, Rows
from tracedb.storage import schema
from tracedb.storage.connection import plan_quickly
from tracedb_torch import ingester


@dataclass
class Reading:
    """What the ingester gave for one file, by table; every row has ``part``."""

    tables: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def rows(self, table: str, *names: str, part: int | None = None) -> list[Any]:
        """Rows as tuples of the named columns (single values for one name), in the order of the file's clock."""
        found = [row for row in self.tables.get(table, []) if part is None or row["part"] == part]
        found.sort(key=lambda row: (row["part"], row.get("start_ns", 0), row.get("event_id", 0)))
        return [row[names[0]] if len(names) == 1 else tuple(row[name] for name in names) for row in found]

    def kernels(self, *names: str) -> list[Any]:
        """Columns of the GPU rows; by default name, start and duration."""
        return self.rows("kernel_event", *(names or ("name", "start_ns", "duration_ns")))

    @property
    def captures(self) -> list[dict[str, Any]]:
        """The capture rows."""
        return self.tables["capture"]

    @property
    def capture(self) -> dict[str, Any]:
        """The only capture row."""
        (row,) = self.captures
        return row

    @property
    def status(self) -> str:
        """Status of the only capture."""
        return str(self.capture["status"])

    @property
    def issues(self) -> dict[str, int]:
        """Count by code."""
        return {row["code"]: row["count"] for row in self.tables.get("ingest_issue", [])}

    @property
    def faults(self) -> dict[str, int]:
        """Count by code of the issues that are warnings."""
        return {
            row["code"]: row["count"] for row in self.tables.get("ingest_issue", []) if row["severity"] == "warning"
        }


def read(path: Path, **options: Any) -> Reading:
    """Read one file with the torch ingester alone, and check what must hold of every reading."""
    captures = list(ingester.find([path]))
    assert len(captures) == 1, f"{path} is not recognised"
    return read_capture(captures[0], **options)


def read_capture(capture: Capture, **options: Any) -> Reading:
    """Read a claimed capture; see ``read``."""
    reading = Reading()
    with instance().cursor() as scratch:  # has temporary tables of its own
        for rows in ingester.read(capture, scratch, Options(**options)):
            reading.tables.setdefault(rows.table, []).extend(as_dicts(rows))
    check(reading)
    return reading


@cache
def instance() -> duckdb.DuckDBPyConnection:
    """The engine that all readings share, which plans as for a small database; starting one takes longer than most."""
    connection = duckdb.connect(":memory:", config={"threads": 1})
    plan_quickly(connection)
    return connection


def as_dicts(rows: Rows) -> Iterator[dict[str, Any]]:
    """Give the rows one by one, with the missing columns as None."""
    data = rows.data.to_arrow_table() if isinstance(rows.data, duckdb.DuckDBPyRelation) else rows.data
    missing = dict.fromkeys(schema.arrow(rows.table).names if rows.table != "capture" else ())
    for row in data.to_pylist():
        yield {**missing, **row, "part": rows.part}


def check(reading: Reading) -> None:
    """What must hold of every reading: nothing is lost without an account, numbers are unique, times are sane."""
    issues = reading.tables.get("ingest_issue", [])
    assert len(issues) == len({(row["part"], row["code"]) for row in issues})
    for capture in reading.captures:
        part = capture["part"]
        gave = sum(len(reading.rows(table, "part", part=part)) for table in schema.EVENT_TABLES)
        assert capture["rows_written"] == gave
        assert capture["events_read"] == gave + capture["events_skipped"]
        assert capture["events_skipped"] == sum(row["skipped"] for row in issues if row["part"] == part)
        for table, key in (("kernel_event", "event_id"), ("launch", "launch_id"), ("op", "op_id")):
            numbers = reading.rows(table, key, part=part)
            assert len(numbers) == len(set(numbers))
            assert all(duration >= 0 for duration in reading.rows(table, "duration_ns", part=part))
        launches, ops = set(reading.rows("launch", "launch_id", part=part)), set(reading.rows("op", "op_id", part=part))
        assert set(reading.rows("kernel_event", "launch_id", part=part)) <= launches | {None}
        assert set(reading.rows("kernel_event", "op_id", part=part)) <= ops | {None}
        assert set(reading.rows("op", "parent_op_id", part=part)) <= ops | {None}
