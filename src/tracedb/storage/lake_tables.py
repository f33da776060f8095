"""How the tables of a database lie in the Parquet files of a lake.

Numbers of captures and of replays are 64-bit there, and no column has a type that other engines lack: ``UBIGINT`` is
stored as the ``BIGINT`` of the same bits.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from functools import cache

from tracedb.storage import schema
from tracedb.storage.connection import identifier

SETTINGS = schema.SETTINGS
"""Tables that a user edits; a lake has its own only if they differ from those of a new database."""
FACTS = schema.ACROSS_CAPTURES
"""Tables derived from several captures: of a run, by ``tracedb lake align``."""
SMALL = (
    *("capture", "device", "ingest_issue", "clock_fault", "clock_alignment", "sample_status"),
    *("replay_run", "replay_pass", "replay", *SETTINGS),
)
"""Tables that are not divided by run."""
CAPTURE_COLUMNS = ("capture_id", "reference_capture_id", "origin_capture_id")
REPLAY_COLUMN = "replay_id"
NOT_STORED = {"capture": "ingested_at"}
"""Columns that the manifest has instead: equal traces give equal files."""
_ORDER = ("capture_id", "device_id", "stream_id", "process_id", "thread_id", "start_ns")
_SIGN = "18446744073709551616::HUGEINT"

Columns = dict[str, str]
"""Type of each column."""


@cache
def declared() -> dict[str, Columns]:
    """Return the tables of the schema. They are read from the DDL, because making tables takes a fifth of a second."""
    tables = re.findall(r"^CREATE TABLE main\.(\w+) \(\n(.*?)^\);", schema.ddl(), re.DOTALL | re.MULTILINE)
    return {name: dict(re.findall(r"^    (\w+) (MAP\([^)]*\)|\w+)", body, re.MULTILINE)) for name, body in tables}


@cache
def layout() -> str:
    """Return the digest of the declaration. Files written with another one may lack columns."""
    said = repr(sorted((table, sorted(columns.items())) for table, columns in declared().items()))
    return hashlib.sha256(said.encode()).hexdigest()[:16]


def stored_type(column: str, kind: str) -> str:
    """Return the type of a column in Parquet."""
    if column in CAPTURE_COLUMNS or column == REPLAY_COLUMN or kind == "UBIGINT":
        return "BIGINT"
    return kind


def written(column: str, kind: str, alias: str) -> str:
    """Return the expression that stores a column of ``alias``."""
    name = f"{alias}.{identifier(column)}"
    if kind == "UBIGINT":
        return (
            f"CASE WHEN {name} >= 9223372036854775808 THEN ({name}::HUGEINT - {_SIGN})::BIGINT ELSE {name}::BIGINT END"
        )
    return name


def read_back(column: str, kind: str) -> str:
    """Return the expression that reads a stored column."""
    name = identifier(column)
    if kind == "UBIGINT":
        return f"CASE WHEN {name} < 0 THEN ({name}::HUGEINT + {_SIGN})::UBIGINT ELSE {name}::UBIGINT END AS {name}"
    return name


def order(columns: Mapping[str, str]) -> str:
    """Return the order of a table's rows in a file: device, stream or thread, start, and the rest to make it total."""
    first = [name for name in _ORDER if name in columns]
    rest = [name for name, kind in columns.items() if name not in first and not kind.startswith("MAP")]
    rest.sort(key=lambda name: not name.endswith("_id"))
    maps = [f"{identifier(name)}::VARCHAR" for name, kind in columns.items() if kind.startswith("MAP")]
    return ", ".join([*map(identifier, [*first, *rest]), *maps])
