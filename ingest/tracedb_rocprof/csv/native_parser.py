"""Bindings of the compiled parser of plain CSV blocks, a small C library.

``native/csv.h`` has the same declarations; if ``INTERFACE`` differs, the library is not used. Without the library, or
with TRACEDB_READER=python in the environment, Arrow parses such blocks with the same result.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tracedb.ingester import native_library
from tracedb_rocprof.csv.headers import Header

LIBRARY = Path(__file__).with_name("native") / "libtracedb_csv.so"
INTERFACE = 2
SKIPPED, NUMBER, TEXT = range(3)
PLAIN, NO_MEMORY = 1, -1
_int64, _pointer = ctypes.c_int64, ctypes.c_void_p


class _Column(ctypes.Structure):
    _fields_ = (
        ("kind", _int64),
        ("values", _pointer),
        ("is_missing", _pointer),
        ("missing", _int64),
        ("starts", _pointer),
        ("lengths", _pointer),
        ("texts", _int64),
    )


FUNCTIONS: tuple[native_library.Function, ...] = (
    ("tracedb_csv_lines", _int64, (_pointer, _int64)),
    (
        "tracedb_csv_parse",
        ctypes.c_int,
        (_pointer, _int64, ctypes.POINTER(_Column), _int64, _int64, ctypes.c_uint64),
    ),
)


def library() -> ctypes.CDLL | None:
    """Return the library; None if it is missing or does not fit, or if the environment asks for Python."""
    return native_library.library(LIBRARY, ("tracedb_csv_interface", INTERFACE), FUNCTIONS)


def state() -> str:
    """Say which CSV parser is in use, and why."""
    return native_library.state(LIBRARY, library() is not None, "Arrow")


class PlainParser:
    """Parses plain blocks of one kind of file. Any number of threads may use it; it releases the interpreter lock."""

    def __init__(self, found: ctypes.CDLL, header: Header) -> None:
        self._library = found
        self._seed = int.from_bytes(os.urandom(8))
        used = set(header.used)
        self._kinds = [
            SKIPPED if name not in used else TEXT if header.is_text(name) else NUMBER for name in header.columns
        ]
        self._names = header.columns

    def parse(self, block: bytes | memoryview) -> tuple[int, dict[str, pa.Array]] | None:
        """Return the number of rows and the columns used; None if a block is not plain, or not UTF-8."""
        data = np.frombuffer(block, np.uint8)
        at = data.ctypes.data
        rows = self._library.tracedb_csv_lines(at, len(data))
        columns = (_Column * len(self._kinds))()
        held = [_room(column, kind, rows) for column, kind in zip(columns, self._kinds, strict=True)]
        status = self._library.tracedb_csv_parse(at, len(data), columns, len(columns), rows, self._seed)
        if status == NO_MEMORY:
            raise MemoryError
        if status != PLAIN:
            return None
        try:
            return rows, {
                name: _array(column, arrays, block)
                for name, column, arrays in zip(self._names, columns, held, strict=True)
                if column.kind != SKIPPED
            }
        except UnicodeDecodeError:
            return None


def _room(column: Any, kind: int, rows: int) -> list[npt.NDArray[Any]]:
    """Attach to a column the arrays that it fills."""
    column.kind = kind
    if kind == SKIPPED:
        return []
    if kind == NUMBER:
        arrays: list[npt.NDArray[Any]] = [np.empty(rows, np.int64), np.empty(rows, np.uint8)]
        column.values, column.is_missing = (array.ctypes.data for array in arrays)
        return arrays
    arrays = [np.empty(rows, np.int32), np.empty(rows, np.int64), np.empty(rows, np.int64)]
    column.values, column.starts, column.lengths = (array.ctypes.data for array in arrays)
    return arrays


def _array(column: Any, arrays: list[npt.NDArray[Any]], block: bytes | memoryview) -> pa.Array:
    values = arrays[0]
    if column.kind == NUMBER:
        return pa.array(values, mask=arrays[1].view(np.bool_)) if column.missing else pa.array(values)
    starts, lengths = (array[: column.texts].tolist() for array in arrays[1:])
    texts = [str(block[start : start + length], "utf-8") for start, length in zip(starts, lengths, strict=True)]
    return pa.DictionaryArray.from_arrays(pa.array(values), pa.array(texts, pa.string()))
