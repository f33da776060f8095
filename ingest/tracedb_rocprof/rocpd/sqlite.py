"""Read SQLite files read-only and without locks: small tables with sqlite3, large ones with the Arrow driver."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from types import NoneType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tracedb.errors import ReadError
from tracedb.ingester import sqlite_driver
from tracedb_rocprof.missing import BAD, NONE

BATCH_ROWS = 32_768
ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""Raised by Python if SQLite cannot read a file: its message may quote bytes that are not UTF-8."""
NUMBER, DECIMAL, TEXT = "INTEGER", "REAL", "BLOB"
KINDS = {NUMBER: pa.int64(), DECIMAL: pa.float64(), TEXT: pa.binary()}
READ = {
    NUMBER: f"CASE typeof({{0}}) WHEN 'integer' THEN {{0}} WHEN 'null' THEN NULL ELSE {BAD} END",
    DECIMAL: "CASE typeof({0}) WHEN 'null' THEN NULL WHEN 'blob' THEN 9e999 WHEN 'text' THEN 9e999 "
    "ELSE CAST({0} AS REAL) END",
    TEXT: "CAST({0} AS BLOB)",
}
"""SQL that reads a column as its kind; a value of another type becomes ``BAD``, or infinite."""
FIRST = {NUMBER: "0", DECIMAL: "0.0", TEXT: "x''"}

Query = tuple[str, Sequence[tuple[str, str, str]]]
"""The FROM clause, and the columns: name, SQL, kind."""


class SqliteFile:
    """An SQLite file."""

    def __init__(self, path: Path) -> None:
        """Raises ``ReadError`` for a file that is truncated, damaged, or left by an interrupted write."""
        self._path = path
        _check_whole(path)
        self.faults: Counter[str] = Counter()
        """Unreadable values, by column and table."""
        rows = self.ask(
            """SELECT m.name, c.name FROM sqlite_master AS m, pragma_table_info(m.name) AS c
            WHERE m.type = 'table' ORDER BY m.name, c.cid"""
        )
        self.tables: dict[str, list[str]] = {}
        for table, column in rows:
            self.tables.setdefault(table, []).append(column)

    def ask(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        try:
            with closing(self._connect()) as connection:
                connection.text_factory = lambda value: value.decode(errors="replace")
                return connection.execute(query).fetchall()
        except ERRORS as error:
            raise _damaged(error) from error

    def rows(self, table: str, columns: Mapping[str, type]) -> list[tuple[Any, ...]]:
        """Return the columns of a small table, integers or texts; missing and bad values are None.

        A missing table has no rows. Values of another type, and ``NONE``, are counted in ``faults``.
        """
        known = self.tables.get(table)
        if known is None:
            return []
        wanted = ", ".join(quoted(name) if name in known else "NULL" for name in columns)
        rows = self.ask(f"SELECT {wanted} FROM {quoted(table)}")
        for place, (name, kind) in enumerate(columns.items()):
            wrong = [
                at for at, row in enumerate(rows) if not isinstance(row[place], kind | NoneType) or row[place] == NONE
            ]
            for at in wrong:
                rows[at] = (*rows[at][:place], None, *rows[at][place + 1 :])
            if wrong:
                self.faults[f"{name} of {table}"] += len(wrong)
        return rows

    def count(self, table: str) -> int:
        """Return the number of rows of a table, 0 if it is missing."""
        return int(self.ask(f"SELECT count(*) FROM {quoted(table)}")[0][0]) if table in self.tables else 0

    def batches(self, query: Query) -> Iterator[dict[str, pa.Array]]:
        """Yield columns of pinned types, a batch of rows at a time.

        The driver takes a column's type from its first value, so a row of the right types is prepended.
        """
        source, columns = query
        first = ", ".join(FIRST[kind] for _, _, kind in columns)
        casts = ", ".join(READ[kind].format(text) for _, text, kind in columns)
        statement = f"SELECT {first} UNION ALL SELECT {casts} FROM {source}"
        is_first = True
        for batch in sqlite_driver.batches(_address(self._path), statement, BATCH_ROWS, _damaged):
            if is_first:
                batch, is_first = batch.slice(1), False
            arrays = zip(columns, batch.columns, strict=True)
            yield {name: _pinned(array, kind) for (name, _, kind), array in arrays}

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(_address(self._path), uri=True)


def quoted(name: str) -> str:
    """Return a name as an identifier."""
    return '"' + name.replace('"', '""') + '"'


def _pinned(column: pa.Array, kind: str) -> pa.Array:
    """Return a column as its kind; a recorded ``NONE`` is bad, since it stands for no value elsewhere."""
    if kind == TEXT:
        return _text(column)
    found = column.cast(KINDS[kind])
    if kind == NUMBER and pc.min(found).as_py() == NONE:
        return pc.max_element_wise(found, pa.scalar(BAD, pa.int64()), skip_nulls=False)
    return found


def _text(column: pa.Array) -> pa.Array:
    """Decode bytes; those that are not UTF-8 are replaced."""
    try:
        return column.cast(pa.string())
    except pa.ArrowInvalid:
        texts = [None if item is None else item.decode(errors="replace") for item in column.to_pylist()]
        return pa.array(texts, pa.string())


def _address(path: Path) -> str:
    """Return the URI that opens the file without locks, unless it has a write-ahead log, which requires them."""
    wal = Path(f"{path}-wal")
    is_whole = not wal.exists() or wal.stat().st_size == 0
    return f"{path.absolute().as_uri()}?mode=ro{'&immutable=1' if is_whole else ''}"


def _check_whole(path: Path) -> None:
    """Raise ``ReadError`` for a file shorter than its header says, or with an unfinished write next to it."""
    with path.open("rb") as file:
        header = file.read(100)
    page = int.from_bytes(header[16:18], "big")
    expected = (65536 if page == 1 else page) * int.from_bytes(header[28:32], "big")
    size = path.stat().st_size
    if len(header) < 100 or (header[24:28] == header[92:96] and size < expected):
        raise ReadError(f"the SQLite file is cut short: {size:,} of {expected:,} bytes; copy or record it again")
    journal = Path(f"{path}-journal")
    if journal.exists() and journal.stat().st_size:
        raise ReadError(f"an unfinished write is next to it ({journal.name}); let the profiler end, or record again")


def _damaged(error: Exception) -> ReadError:
    said = " ".join(str(error).partition("\nquery:")[0].split())[:200]  # the Arrow driver appends its query
    if "no such column" in said:
        return ReadError(
            f"its tables have other columns than expected ({said}); convert it with the tool of its release"
        )
    return ReadError(f"the SQLite file is damaged or in use ({said}); copy or record it again")
