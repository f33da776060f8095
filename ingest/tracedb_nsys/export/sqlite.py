"""SQLite exports, read-only and without locks: integer tables by pages, everything else by the Arrow driver."""

from __future__ import annotations

import sqlite3
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from tracedb.errors import ReadError
from tracedb.ingester import sqlite_driver
from tracedb_nsys.export import integer_limits, native_pages, sqlite_check
from tracedb_nsys.export.protocol import STRINGS, TEXT, Unsound, decoded, is_export, schema
from tracedb_nsys.export.queries import check_order, joined, numbered, quoted, select
from tracedb_nsys.export.read_ahead import in_turn

BATCH_ROWS = 30_720
SNIFF = 1 << 20
PIECE_BATCHES = 4  # a row group of DuckDB
IMMUTABLE = "&immutable=1"
MOST_ASKED = 500
EMPTY, NO_NUMBERS = (1, 0), (-1, -2)
MOST_GAPS = 4
"""Largest ratio of row-number span to row count at which reading by ranges of row numbers is worthwhile."""
LARGEST_NUMBER = 1 << 31
"""Larger row numbers are not used: the next table's numbers are added to them, and calls have 32-bit numbers."""
MARKS = (b"StringIds", b"TARGET_INFO_", b"CUPTI_ACTIVITY_KIND_")


def is_nsys(path: Path) -> bool:
    """Whether an SQLite file is an nsys export; for a damaged one, whether it looks like one."""
    try:
        return is_export(_tables(path))
    except sqlite_check.ERRORS:  # raised for a damaged schema
        with path.open("rb") as file:
            start = file.read(SNIFF)
        return sum(mark in start for mark in MARKS) > 1


def _address(path: Path) -> str:
    """Return the URI that opens the file without locks, unless it has a write-ahead log, which requires them."""
    wal = Path(f"{path}-wal")
    whole = not wal.exists() or wal.stat().st_size == 0
    return f"{path.absolute().as_uri()}?mode=ro{IMMUTABLE if whole else ''}"


def _connect(path: Path) -> sqlite3.Connection:
    # DuckDB drains the rows in a thread of its own; only one thread uses the connection at a time.
    connection = sqlite3.connect(_address(path), uri=True, check_same_thread=False, timeout=sqlite_check.LOCK_WAIT_S)
    connection.text_factory = _lenient
    return connection


def _lenient(text: bytes) -> str:
    """Decode text of a possibly damaged file, also table names."""
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
        """Raises ``ReadError`` for a file that is locked, truncated or damaged beyond reading."""
        self._path = path
        sqlite_check.check_whole(path)
        sqlite_check.check_free(path)
        try:
            self.tables = _tables(path)
        except sqlite_check.ERRORS as error:
            raise sqlite_check.damaged(error) from error
        self.odd: Counter[tuple[str, str]] = Counter()
        self._lock = threading.Lock()  # several threads read pieces
        self._spans: dict[str, tuple[int, int]] = {}
        self._counts: dict[str, int] = {}
        self._pages: dict[str, native_pages.Table | None] = {}
        self._read: dict[str, int] = {}
        self._is_checked = False
        self._found: str | None = None
        self._fault = self._fault_of_pages() if path.stat().st_size <= sqlite_check.SMALL else None

    def count(self, table: str) -> int:
        """Return the number of rows."""
        if table not in self._counts:
            self._counts[table] = int(self._ask(f"SELECT count(*) FROM {quoted(table)}")[0][0])
        return self._counts[table]

    def stored_rows(self, table: str) -> int:
        """Return the number of rows of a table that is not read; duplicates in a damaged file count once.

        SQLite's own count trusts the pages' counters, which damage can inflate.
        """
        if self._fault is None or self._span(table) == NO_NUMBERS:
            return self.count(table)
        rows = f"SELECT DISTINCT +rowid, * FROM {quoted(table)} NOT INDEXED"
        return int(self._ask(f"SELECT count(*) FROM ({rows})")[0][0])

    def upper_bound(self, table: str) -> int:
        """Return the largest row number: the number of rows, unless some were deleted."""
        return self._span(table)[1] if self._is_dense(table) else self.count(table)

    def small(self, table: str, columns: Sequence[str]) -> list[tuple[Any, ...]]:
        """Return the values of a small table; a missing column gives None."""
        if table not in self.tables:
            return []
        known = self.tables[table]
        wanted = ", ".join(quoted(name) if name in known else "NULL" for name in columns)
        return self._ask(f"SELECT {wanted} FROM {quoted(table)}")

    def batches(self, table: str, columns: Sequence[str], parts: int) -> list[Iterator[pa.RecordBatch]]:
        """Return one iterator, whose rows ``parts`` threads read ahead by ranges of row numbers."""
        if not self._is_dense(table):
            return [numbered(self._run(table, self._scan(table, columns), columns))]
        low, high = self._span(table)
        step = PIECE_BATCHES * BATCH_ROWS
        pieces = [range(start, min(start + step, high + 1)) for start in range(low, high + 1, step)]
        return [in_turn(partial(self._piece, table, columns), pieces, parts)] if pieces else []

    def texts(self, numbers: Sequence[int]) -> dict[int, str]:
        """Return strings of the export by id, those that exist."""
        found: list[tuple[Any, ...]] = []
        for first in range(0, len(numbers), MOST_ASKED):
            wanted = ", ".join(str(int(number)) for number in numbers[first : first + MOST_ASKED])
            query = f"SELECT id, min(value) FROM {STRINGS} WHERE id IN ({wanted}) AND value IS NOT NULL GROUP BY id"
            found += self._ask(query)
        return {int(number): str(integer_limits.text_of(value)) for number, value in found}

    def verify(self, table: str, rows: int) -> None:
        """Compare the rows read with SQLite's count, and both with the row numbers.

        Raises ``Unsound`` for a damaged table. nsys numbers rows without gaps, so SQLite has to check all pages only if
        there are gaps or no rows: then rows were deleted, or damage hides them.
        """
        self._read[table] = rows
        if self._fault is not None:
            return
        count, (low, high) = self.count(table), self._span(table)
        if rows != count:
            raise Unsound(f"{table}: {rows:,} of {count:,} rows are found by their numbers")
        has_gaps = not count or low > 1 or high - low + 1 != count
        if has_gaps and (found := self._fault_of_pages()):
            raise Unsound(found)

    def _fault_of_pages(self) -> str | None:
        """Return the fault SQLite finds in the file's pages; the check runs once."""
        if not self._is_checked:
            self._is_checked, self._found = True, sqlite_check.fault(_connect(self._path))
        return self._found

    def distrust(self, fault: str) -> None:
        """Read all tables in page order from now on."""
        self._fault = fault
        self.odd.clear()

    def losses(self) -> tuple[int, str] | None:
        """Return the number of rows lost to damage and a description; None for an intact file."""
        if self._fault is None:
            return None
        lost, lines = 0, []
        for table, rows in self._read.items():
            count, (low, high) = self.count(table), self._span(table)
            span = high - low + 1
            expected = max(count, span) if span <= MOST_GAPS * max(count, 1) else count
            if rows != expected:
                lost += max(expected - rows, 0)
                lines.append(f"{table}: {rows:,} rows read, SQLite counts {count:,}, their numbers {span:,}")
        return lost, "; ".join([f"the SQLite file is damaged ({self._fault}); its pages were read one by one", *lines])

    def _is_dense(self, table: str) -> bool:
        """Whether the rows have usable row numbers and can be read in ranges of them."""
        low, high = self._span(table)
        least = 0 if table == STRINGS else 1
        if self._fault is not None or low < least or high > LARGEST_NUMBER:
            return False
        return high - low < MOST_GAPS * max(self.count(table), 1)

    def _by_pages(self, table: str) -> native_pages.Table | None:
        """Return the page reader of the table; None if SQLite has to read it."""
        if table not in self._pages:
            is_quiet = _address(self._path).endswith(IMMUTABLE)
            self._pages[table] = native_pages.table(self._path, _connect(self._path), table) if is_quiet else None
        return self._pages[table]

    def _piece(self, table: str, columns: Sequence[str], rows: range) -> list[pa.RecordBatch]:
        by_pages = self._by_pages(table)
        whole = [name for name in columns if name not in TEXT]
        read = by_pages.read(whole, rows) if by_pages is not None else None
        if read is not None and len(whole) == len(columns):
            return [read]
        where = f"WHERE rowid BETWEEN {rows.start} AND {rows.stop - 1}"
        if read is not None:
            texts = [name for name in columns if name in TEXT]
            found = list(self._run(table, select(table, texts, "rowid", where), texts))
            return list(joined(table, read, found, columns))
        found = list(self._run(table, select(table, columns, "rowid", where), columns))
        check_order(table, found)
        return found

    def _span(self, table: str) -> tuple[int, int]:
        """Return the least and greatest row number; ``EMPTY`` or ``NO_NUMBERS`` for a table without any."""
        if table not in self._spans:
            self._spans[table] = self._ask_span(table)
        return self._spans[table]

    def _ask_span(self, table: str) -> tuple[int, int]:
        name = quoted(table)  # min and max in one query would cost a scan
        try:
            low, high = self._ask(f"SELECT (SELECT min(rowid) FROM {name}), (SELECT max(rowid) FROM {name})")[0]
        except ReadError as error:
            if "no such column" not in str(error):
                raise
            return NO_NUMBERS
        return (low, high) if low is not None else EMPTY

    def _scan(self, table: str, columns: Sequence[str]) -> str:
        """Return the query for all rows in page order.

        Damage can make SQLite visit a page twice; identical rows with the same number count once.
        """
        if self._fault is None or self._span(table) == NO_NUMBERS:
            return select(table, columns, "0", "")
        names = ", ".join(quoted(name) for name in columns)
        once = f"(SELECT DISTINCT +rowid, {names} FROM {quoted(table)} NOT INDEXED)"
        return select(once, columns, "0", "", is_query=True)

    def _run(self, table: str, query: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        rows = sqlite_driver.batches(_address(self._path), query, BATCH_ROWS, sqlite_check.damaged)
        wanted = schema(columns)
        is_first = not TEXT.isdisjoint(columns)
        for batch in rows:
            if is_first:
                batch, is_first = batch.slice(1), False
            arrays = [
                decoded(array) if field.type == pa.string() else array.cast(field.type)
                for array, field in zip(batch.columns, wanted, strict=True)
            ]
            made = pa.RecordBatch.from_arrays(arrays, schema=wanted)
            yield integer_limits.within(made, table, partial(self._count_odd, table))

    def _count_odd(self, table: str, column: str, count: int) -> None:
        with self._lock:
            self.odd[table, column] += count

    def _ask(self, query: str) -> list[tuple[Any, ...]]:
        try:
            with closing(_connect(self._path)) as connection:
                return connection.execute(query).fetchall()
        except sqlite_check.ERRORS as error:
            raise sqlite_check.damaged(error) from error
