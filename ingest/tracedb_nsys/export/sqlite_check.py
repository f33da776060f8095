"""Check that an SQLite file is complete, unlocked and intact, as far as possible without reading all of it.

SQLite finds rows by row number. One number out of order hides other rows from a lookup without an error, but a full
scan in page order still finds every row.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from tracedb.errors import ReadError

ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""Raised by Python if SQLite cannot read a file: its message may quote bytes that are not UTF-8."""
LOCK_WAIT_S = 2.0
SMALL = 4 << 20
"""Files up to this size are checked in full before they are read, which takes about 3 ms per megabyte."""
ASK_AGAIN = "export it again with `nsys export --type=sqlite`"
TREES = ("***", "Tree", "On tree", "Page", "Freelist", "Main freelist")
"""Prefixes of SQLite's messages about pages; others are about values that violate constraints."""


def damaged(error: BaseException) -> ReadError:
    """Return the error for a file that SQLite cannot read."""
    said = _line(str(error).partition("\nquery:")[0])  # the Arrow driver appends its query
    return ReadError(f"the SQLite file cannot be read ({said}); copy it or {ASK_AGAIN}")


def check_whole(path: Path) -> None:
    """Raise ``ReadError`` for a file shorter than its first page says, or one that an export is still writing."""
    with path.open("rb") as file:
        header = file.read(100)
    if len(header) < 100:
        raise ReadError(f"incomplete nsys capture: the file holds {len(header)} bytes; {ASK_AGAIN}")
    page = int.from_bytes(header[16:18], "big")
    expected = (65536 if page == 1 else page) * int.from_bytes(header[28:32], "big")
    is_current = header[24:28] == header[92:96]
    size = path.stat().st_size
    if is_current and size < expected:
        raise ReadError(f"the SQLite file is cut short: {size:,} of {expected:,} bytes; copy it or {ASK_AGAIN}")
    journal = Path(f"{path}-journal")
    if journal.exists() and journal.stat().st_size:
        raise ReadError(
            f"the journal of an unfinished write is next to it ({journal.name}); let the export finish, or {ASK_AGAIN}"
        )


def check_free(path: Path) -> None:
    """Raise ``ReadError`` if another program is writing the file."""
    with suppress(*ERRORS):
        try:
            address = f"{path.absolute().as_uri()}?mode=ro"
            with closing(sqlite3.connect(address, uri=True, timeout=LOCK_WAIT_S)) as connection:
                connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                raise ReadError(
                    "the SQLite file is locked: another program is writing to it; close that program (a running "
                    "export? a database browser?) and try again"
                ) from error


def fault(connection: sqlite3.Connection) -> str | None:
    """Return the fault SQLite finds in the pages of a file; None if there is none."""
    try:
        with closing(connection):
            said = [str(row[0]) for row in connection.execute("PRAGMA quick_check").fetchall()]
    except ERRORS as error:
        return _line(str(error))
    found = [line for text in said for line in text.splitlines() if text.startswith(TREES)]
    return next((_line(line) for line in found if not line.startswith("***")), None)


def _line(text: str) -> str:
    return " ".join(text.split())[:200]
