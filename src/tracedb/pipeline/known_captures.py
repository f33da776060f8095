"""The captures that a database already holds."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import duckdb

from tracedb.derive import time_faults
from tracedb.errors import EmptyDatabase
from tracedb.storage.connection import open_read_only
from tracedb.storage.database_file import check_writable


def in_database(database: Path) -> tuple[dict[int, set[str]], int]:
    """Return the digests of the loaded captures, by size in bytes, and the first free capture number.

    Raises ``DatabaseBusy``, and ``TracedbError`` if there is no database and none can be created.
    """
    if not database.exists():
        check_writable(database)
        return {}, 1
    try:
        with open_read_only(database) as connection:
            rows = connection.execute("SELECT size_bytes, sha256 FROM main.capture WHERE sha256 IS NOT NULL").fetchall()
            free = connection.execute("SELECT coalesce(max(capture_id), 0) + 1 FROM main.capture").fetchone()
    except EmptyDatabase:
        return {}, 1
    known: dict[int, set[str]] = {}
    for size, digest in rows:
        known.setdefault(size, set()).add(digest)
    return known, free[0] if free else 1


class Known:
    """Numbers and digests of the committed captures, and the time bounds of the file, in ns.

    Read once while the database is open for writing: no other process can write until it is closed.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        rows = connection.execute("SELECT capture_id, sha256 FROM main.capture").fetchall()
        self._numbers = {number for number, _ in rows}
        self._digests = {digest for _, digest in rows if digest is not None}
        self._highest = max(self._numbers, default=0)
        self.time_bounds = time_faults.bounds(connection)

    @property
    def is_empty(self) -> bool:
        """Whether there is no capture."""
        return not self._numbers

    @property
    def digests(self) -> set[str]:
        """The file digests of all captures."""
        return self._digests

    def holds(self, digest: str) -> bool:
        """Whether a capture with this digest is loaded."""
        return digest in self._digests

    def is_taken(self, number: int) -> bool:
        """Whether a capture has this number."""
        return number in self._numbers

    @property
    def following(self) -> int:
        """The number after the highest one."""
        return self._highest + 1

    def add(self, numbers: Iterable[int], digest: str) -> None:
        """Add captures that have been committed."""
        self._numbers.update(numbers)
        self._digests.add(digest)
        self._highest = max(self._numbers, default=0)
