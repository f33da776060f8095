"""Remove private data from an export before it is cached: environment, command lines, output and file paths.

tracedb reads none of it. Strings that no event refers to are removed too, since they include paths and variables. The
host name and the versions of driver and system stay, since the capture row has them.
"""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

from tracedb.errors import ReadError
from tracedb_nsys.export.protocol import STRINGS
from tracedb_nsys.header import RECORDING_FAULTS, SYSTEM, SYSTEM_KEYS

GONE = (
    "ProcessStreams",
    "ANALYSIS_FILE",
    "PROCESSES",
    "ThreadNames",
    "SAMPLING_CALLCHAINS",
    "OSRT_CALLCHAINS",
    "OSRT_FILE_ACCESS_DESCRIPTORS",
)
"""Tables with text about processes: their output, names and files."""
TARGETS = ("TARGET_INFO_GPU", "TARGET_INFO_CUDA_", "TARGET_INFO_SESSION_START_TIME", SYSTEM)
"""Machine tables that are kept; others with that prefix are dropped."""
TEXTS = re.compile(r"(?i)(name|text|string|symbol|label|message|category|description)(id)?$")
"""Columns that refer to strings by id; strings without a reference are removed."""


def scrub(export: Path) -> None:
    """Remove private data from an SQLite export and overwrite its bytes. Raises ``ReadError``."""
    try:
        with closing(sqlite3.connect(export, isolation_level=None)) as connection:
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute("PRAGMA synchronous = OFF")  # a draft: after a crash it is discarded
            connection.execute("BEGIN")
            _scrub(connection)
            connection.execute("COMMIT")
    except sqlite3.Error as error:
        raise ReadError(f"nsys did not export a complete SQLite file ({error}); export it again") from error


def _scrub(connection: sqlite3.Connection) -> None:
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    gone = [name for name in tables if _goes(name)]
    if STRINGS in tables:
        connection.execute("CREATE TEMP TABLE meant (id INTEGER PRIMARY KEY)")
        for name in set(tables) - set(gone) - {STRINGS}:
            for column in _text_columns(connection, name):
                numbers = f"SELECT {column} FROM {_quoted(name)} WHERE typeof({column}) = 'integer'"
                connection.execute(f"INSERT OR IGNORE INTO temp.meant {numbers}")
        connection.execute(f"DELETE FROM {STRINGS} WHERE id NOT IN (SELECT id FROM temp.meant)")
    for name in gone:
        connection.execute(f"DROP TABLE {_quoted(name)}")
    if SYSTEM in tables:
        connection.execute(f"DELETE FROM {SYSTEM} WHERE {_none_of('name', SYSTEM_KEYS)}", sorted(SYSTEM_KEYS))
    if "META_DATA_CAPTURE" in tables:
        connection.execute(
            """DELETE FROM META_DATA_CAPTURE
               WHERE coalesce(name, '') NOT LIKE '%CUDA%' AND name IS NOT 'CAPTURE_EVENT_TYPE'"""
        )
    if "DIAGNOSTIC_EVENT" in tables:
        kept = " OR ".join("instr(text, ?) > 0" for _ in RECORDING_FAULTS)
        connection.execute(f"DELETE FROM DIAGNOSTIC_EVENT WHERE ({kept}) IS NOT TRUE", RECORDING_FAULTS)


def _goes(table: str) -> bool:
    if table.startswith("TARGET_INFO_"):
        return not table.startswith(TARGETS)
    return table in GONE or "ENVIRON" in table.upper()


def _text_columns(connection: sqlite3.Connection, table: str) -> list[str]:
    columns = connection.execute("SELECT name FROM pragma_table_info(?)", [table]).fetchall()
    return [_quoted(name) for (name,) in columns if TEXTS.search(name)]


def _none_of(column: str, values: frozenset[str]) -> str:
    return f"coalesce({column}, '') NOT IN ({', '.join('?' for _ in values)})"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
