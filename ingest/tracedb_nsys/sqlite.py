"""Exports in SQLite, read only and without locks: by the Arrow driver, else by the standard library."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from tracedb.compiled import has_sqlite_driver
from tracedb.errors import ReadError
from tracedb_nsys import pages, plain
from tracedb_nsys.ahead import in_turn
from tracedb_nsys.tables import STRINGS, TEXT, decoded, is_export, schema

BATCH_ROWS = 30_720
BATCH_ROWS_PLAIN = 16_384
SNIFF = 1 << 20
PIECE_BATCHES = 4  # a row group of DuckDB
IMMUTABLE = "&immutable=1"
MOST_ASKED = 500
MOST_GAPS = 4
"""How many row numbers there may be to a row, for ranges of numbers to be worth reading each for itself."""
LOCK_WAIT_S = 2.0
MARKS = (b"StringIds", b"TARGET_INFO_", b"CUPTI_ACTIVITY_KIND_")
ASK_AGAIN = "export it again with `nsys export --type=sqlite`"


def is_nsys(path: Path) -> bool:
    """Whether an SQLite file is an export of nsys; of a damaged one, whether it looks like one."""
    try:
        return is_export(_tables(path))
    except (sqlite3.Error, UnicodeDecodeError):  # of what SQLite says of a damaged schema
        with path.open("rb") as file:
            start = file.read(SNIFF)
        return sum(mark in start for mark in MARKS) > 1


def _address(path: Path) -> str:
    """Return the URI that opens the file without locks; what a write-ahead log still holds needs them."""
    wal = Path(f"{path}-wal")
    whole = not wal.exists() or wal.stat().st_size == 0
    return f"{path.absolute().as_uri()}?mode=ro{IMMUTABLE if whole else ''}"


def _connect(path: Path) -> sqlite3.Connection:
    # DuckDB drains the rows in a thread of its own, one at a time.
    connection = sqlite3.connect(_address(path), uri=True, check_same_thread=False, timeout=LOCK_WAIT_S)
    connection.text_factory = _lenient
    return connection


def _lenient(text: bytes) -> str:
    """Return text that a damaged file may hold, also as the name of a table."""
    return text.decode(errors="replace")


def _tables(path: Path) -> dict[str, list[str]]:
    with closing(_connect(path)) as connection:
        rows = connection.execute(
            """SELECT m.name, c.name FROM sqlite_master AS m, pragma_table_info(m.name) AS c
            WHERE m.type = 'table' ORDER BY m.name, c.cid"""
        ).fetchall()
    tables: dict[str, list[str]] = {}
    for table, column in rows:
        tables.setdefault(table, []).append(column)
    return tables


class SqliteExport:
    """An export in one SQLite file."""

    format = "sqlite"

    def __init__(self, path: Path) -> None:
        """Raises ``ReadError`` for a file that is locked, cut short or damaged."""
        self._path = path
        _check_whole(path)
        _check_free(path)
        try:
            self.tables = _tables(path)
        except sqlite3.Error as error:
            raise _damaged(error) from error
        self._keyed: dict[str, tuple[int, int] | None] = {}
        self._counts: dict[str, int] = {}
        self._pages: dict[str, pages.Table | None] = {}

    def count(self, table: str) -> int:
        """Return the number of rows."""
        if table not in self._counts:
            self._counts[table] = int(self._ask(f"SELECT count(*) FROM {_quoted(table)}")[0][0])
        return self._counts[table]

    def about(self, table: str) -> int:
        """Return the span of row numbers: the number of rows, unless some were deleted."""
        span = self._span(table)
        return span[1] - span[0] + 1 if span else self.count(table)

    def small(self, table: str, columns: Sequence[str]) -> list[tuple[Any, ...]]:
        """Return the values of a small table; a column that is not there gives None."""
        if table not in self.tables:
            return []
        known = self.tables[table]
        wanted = ", ".join(_quoted(name) if name in known else "NULL" for name in columns)
        return self._ask(f"SELECT {wanted} FROM {_quoted(table)}")

    def batches(self, table: str, columns: Sequence[str], parts: int) -> list[Iterator[pa.RecordBatch]]:
        """Return one iterator, whose rows ``parts`` threads read ahead by ranges of row numbers."""
        span = self._span(table)
        if span is None:
            return [_numbered(self._run(self._select(table, columns, "0", ""), columns))]
        low, high = span
        if high < low:
            return []
        if high - low >= MOST_GAPS * self.count(table):
            return [self._run(self._select(table, columns, "rowid", ""), columns)]
        step = PIECE_BATCHES * BATCH_ROWS
        pieces = [range(start, min(start + step, high + 1)) for start in range(low, high + 1, step)]
        return [in_turn(partial(self._piece, table, columns), pieces, parts)]

    def texts(self, numbers: Sequence[int]) -> dict[int, str]:
        """Return strings of the export by their numbers, as far as it has them."""
        found: list[tuple[Any, ...]] = []
        for first in range(0, len(numbers), MOST_ASKED):
            wanted = ", ".join(str(int(number)) for number in numbers[first : first + MOST_ASKED])
            query = f"SELECT id, min(value) FROM {STRINGS} WHERE id IN ({wanted}) AND value IS NOT NULL GROUP BY id"
            found += self._ask(query)
        return {int(number): str(value) for number, value in found}

    def _by_pages(self, table: str) -> pages.Table | None:
        """Return the reader of the table's pages; None where SQLite has to read them."""
        if table not in self._pages:
            is_quiet = _address(self._path).endswith(IMMUTABLE)
            self._pages[table] = pages.table(self._path, _connect(self._path), table) if is_quiet else None
        return self._pages[table]

    def _piece(self, table: str, columns: Sequence[str], rows: range) -> list[pa.RecordBatch]:
        by_pages = self._by_pages(table) if TEXT.isdisjoint(columns) else None
        if by_pages is not None and (read := by_pages.read(columns, rows)) is not None:
            return [read]
        if not has_sqlite_driver() and TEXT.isdisjoint(columns):
            return list(self._numbers(table, columns, rows))
        where = f"WHERE rowid BETWEEN {rows.start} AND {rows.stop - 1}"
        return list(self._run(self._select(table, columns, "rowid", where), columns))

    def _span(self, table: str) -> tuple[int, int] | None:
        """Return the least and greatest row number; None for a table without."""
        if table not in self._keyed:
            try:
                name = _quoted(table)  # asked for together, they would cost a scan
                low, high = self._ask(f"SELECT (SELECT min(rowid) FROM {name}), (SELECT max(rowid) FROM {name})")[0]
                self._keyed[table] = (low, high) if low is not None else (0, -1)
            except ReadError as error:
                if "no such column" not in str(error):
                    raise
                self._keyed[table] = None
        return self._keyed[table]

    def _select(self, table: str, columns: Sequence[str], number: str, where: str) -> str:
        """Return the query: the driver takes a column's type from what comes first, so every value has one type.

        Without casts one fraction makes a whole column of nanoseconds one of doubles; without a first row a column of
        text that begins with NULLs becomes one of integers. Integers alone need no first row, which costs a fifth.
        """
        casts = ", ".join(f"CAST({_quoted(name)} AS {'BLOB' if name in TEXT else 'INTEGER'})" for name in columns)
        rows = f"SELECT {number}, {casts} FROM {_quoted(table)} {where}"
        if TEXT.isdisjoint(columns):
            return rows
        first = ", ".join("x''" if name in TEXT else "0" for name in columns)
        return f"SELECT 0, {first} UNION ALL {rows}"

    def _numbers(self, table: str, columns: Sequence[str], rows: range) -> Iterator[pa.RecordBatch]:
        quoted = [_quoted(name) for name in columns]
        try:
            found = plain.numbers(_connect(self._path), _quoted(table), quoted, rows, BATCH_ROWS_PLAIN)
            for batch in found:
                yield batch.rename_columns(schema(columns).names)
        except (sqlite3.Error, pa.ArrowException) as error:
            raise _damaged(error) from error

    def _run(self, query: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        rows = _plain(self._path, query, columns) if not has_sqlite_driver() else _arrow(self._path, query)
        wanted = schema(columns)
        is_first = not TEXT.isdisjoint(columns)
        for batch in rows:
            if is_first:
                batch, is_first = batch.slice(1), False
            arrays = [
                decoded(array) if field.type == pa.string() else array.cast(field.type)
                for array, field in zip(batch.columns, wanted, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=wanted)

    def _ask(self, query: str) -> list[tuple[Any, ...]]:
        try:
            with closing(_connect(self._path)) as connection:
                return connection.execute(query).fetchall()
        except sqlite3.Error as error:
            raise _damaged(error) from error


def _arrow(path: Path, query: str) -> Iterator[pa.RecordBatch]:
    import adbc_driver_sqlite.dbapi as driver

    try:
        with driver.connect(_address(path)) as connection, connection.cursor() as cursor:
            cursor.adbc_statement.set_options(**{"adbc.sqlite.query.batch_rows": BATCH_ROWS})
            cursor.execute(query)
            yield from cursor.fetch_record_batch()
    except (driver.Error, pa.ArrowException, OSError) as error:
        raise _damaged(error) from error


def _plain(path: Path, query: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    try:
        yield from plain.values(_connect(path), query, columns, BATCH_ROWS_PLAIN)
    except sqlite3.Error as error:
        raise _damaged(error) from error


def _numbered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    done = 0
    for batch in batches:
        numbers = pa.array(range(done + 1, done + batch.num_rows + 1), pa.int64())
        yield pa.RecordBatch.from_arrays([numbers, *batch.columns[1:]], schema=batch.schema)
        done += batch.num_rows


def _check_whole(path: Path) -> None:
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
        raise ReadError(f"an unfinished write lies beside it ({journal.name}); let the export finish, or {ASK_AGAIN}")


def _check_free(path: Path) -> None:
    """Raise ``ReadError`` where another program writes to the file."""
    with suppress(sqlite3.DatabaseError):
        try:
            address = f"{path.absolute().as_uri()}?mode=ro"
            with closing(sqlite3.connect(address, uri=True, timeout=LOCK_WAIT_S)) as connection:
                connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                raise ReadError(
                    "the SQLite file is locked: another program writes to it; close it there (an export that still "
                    "runs? a database browser?) and try again"
                ) from error


def _damaged(error: BaseException) -> ReadError:
    return ReadError(f"the SQLite file cannot be read ({' '.join(str(error).split())[:200]}); copy it or {ASK_AGAIN}")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
