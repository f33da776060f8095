"""The captures that a database holds, asked for once while it is open: nobody else writes into it meanwhile."""

from __future__ import annotations

from collections.abc import Iterable

import duckdb

from tracedb.derive import time_faults


class Known:
    """Numbers and digests of the captures that are committed, and the bounds of times that are set, in ns."""

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
        """The digests of all files that captures are of."""
        return self._digests

    def holds(self, digest: str) -> bool:
        """Whether a capture of files with this digest is there."""
        return digest in self._digests

    def is_taken(self, number: int) -> bool:
        """Whether a capture has this number."""
        return number in self._numbers

    @property
    def following(self) -> int:
        """The number after the highest one."""
        return self._highest + 1

    def add(self, numbers: Iterable[int], digest: str) -> None:
        """Take captures that have been committed."""
        self._numbers.update(numbers)
        self._digests.add(digest)
        self._highest = max(self._numbers, default=0)
