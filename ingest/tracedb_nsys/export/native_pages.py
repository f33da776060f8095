"""Bindings of the compiled reader of SQLite pages, a small C library that reads integer columns of a table.

``native/pages.h`` has the same declarations; if ``INTERFACE`` differs, the library is not used. Without the library,
with TRACEDB_READER=python in the environment, or if a table holds anything but integers within the limits of their
columns, SQLite reads the rows with the same result, at a fifth of the speed.
"""

from __future__ import annotations

import ctypes
import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa

from tracedb.ingester import native_library
from tracedb_nsys.export.integer_limits import limits
from tracedb_nsys.export.protocol import ROW

LIBRARY = Path(__file__).with_name("native") / "libtracedb_pages.so"
INTERFACE = 2
NO_MEMORY = -2
HEADER_BYTES = 100
PAGE_SIZE, RESERVED = slice(16, 18), 20
"""Places in the header of a file: bytes of a page (1 for 65,536), and bytes that SQLite leaves free in each."""
_int64, _pointer = ctypes.c_int64, ctypes.c_void_p


class _File(ctypes.Structure):
    _fields_ = (
        ("handle", _int64),
        ("page_size", _int64),
        ("usable", _int64),
        ("pages", _int64),
        ("root", _int64),
    )


class _Column(ctypes.Structure):
    _fields_ = (
        ("place", _int64),
        ("least", _int64),
        ("most", _int64),
        ("values", _pointer),
        ("is_missing", _pointer),
        ("missing", _int64),
    )


FUNCTIONS: tuple[native_library.Function, ...] = (
    (
        "tracedb_pages_read",
        _int64,
        (ctypes.POINTER(_File), _int64, _int64, ctypes.POINTER(_Column), _int64, _pointer, _int64),
    ),
)


def library() -> ctypes.CDLL | None:
    """Return the library; None if it is missing or does not fit, or if the environment asks for Python."""
    return native_library.library(LIBRARY, ("tracedb_pages_interface", INTERFACE), FUNCTIONS)


def state() -> str:
    """Say which reader of large tables is in use, and why."""
    return native_library.state(LIBRARY, library() is not None, "SQLite")


class Table:
    """A table of a file that is not being written. Any number of threads may read; the interpreter lock is released."""

    def __init__(self, compiled: ctypes.CDLL, path: Path, root: int, name: str, places: dict[str, int]) -> None:
        """``root``: the table's root page; ``places``: positions of its columns in a record."""
        self._library = compiled
        self._path = path
        self._root = root
        self._name = name
        self._places = places

    def read(self, columns: Sequence[str], rows: range) -> pa.RecordBatch | None:
        """Return columns of a range of row numbers, the numbers first; None if SQLite itself must read them."""
        order = sorted(range(len(columns)), key=lambda at: self._places[columns[at]])
        made = (_Column * len(columns))()
        numbers = np.empty(len(rows), np.int64)
        values = [np.empty(len(rows), np.int64) for _ in columns]
        missing = [np.empty(len(rows), np.bool_) for _ in columns]
        for column, at in zip(made, order, strict=True):
            column.place = self._places[columns[at]]
            column.least, column.most = limits(columns[at], self._name)
            column.values, column.is_missing = values[at].ctypes.data, missing[at].ctypes.data
        with self._path.open("rb", buffering=0) as file:
            header = file.read(HEADER_BYTES)
            page_size = int.from_bytes(header[PAGE_SIZE], "big")
            page_size = 65536 if page_size == 1 else page_size
            pages = os.fstat(file.fileno()).st_size // max(page_size, 1)
            layout = _File(file.fileno(), page_size, page_size - header[RESERVED], pages, self._root)
            count = self._library.tracedb_pages_read(
                layout, rows.start, rows.stop - 1, made, len(made), numbers.ctypes.data, len(rows)
            )
        if count == NO_MEMORY:
            raise MemoryError
        if count < 0:
            return None
        arrays = [pa.array(numbers[:count])]
        has_gaps = {at: column.missing for column, at in zip(made, order, strict=True)}
        for at in range(len(columns)):
            mask = missing[at][:count] if has_gaps[at] else None
            arrays.append(pa.array(values[at][:count], mask=mask))
        return pa.RecordBatch.from_arrays(arrays, names=[ROW, *columns])


def table(path: Path, connection: sqlite3.Connection, name: str) -> Table | None:
    """Return a table that can be read by pages; None if SQLite must read it."""
    compiled = library()
    if compiled is None:
        return None
    with closing(connection):
        roots = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE type = 'table' AND name = ? AND sql NOT LIKE '%WITHOUT%ROWID%'",
            [name],
        ).fetchall()
        columns = connection.execute(
            "SELECT name, pk, hidden FROM pragma_table_xinfo(?) ORDER BY cid", [name]
        ).fetchall()
    # An integer primary key is not in the record; generated columns may not be.
    if not roots or any(key or hidden for _, key, hidden in columns):
        return None
    places = {column: place for place, (column, _, _) in enumerate(columns)}
    return Table(compiled, path, roots[0][0], name, places)
