"""Bindings of the compiled scanner, a small C library that scans blocks of events.

``native/scan.h`` has the same declarations; if ``INTERFACE`` differs, the library is not used. Without the library, or
with TRACEDB_READER=python in the environment, blocks are decoded in Python with the same result.
"""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tracedb.ingester import Options, native_library

LIBRARY = Path(__file__).with_name("native") / "libtracedb_scan.so"
INTERFACE = 7
TABLES, MOST_COLUMNS, COUNTS, MOST_PROCESSES = 5, 24, 5, 64
SOUND, NOT_SOUND, LIST_ENDED, NO_MEMORY, LEFT_OVER, UNREADABLE = range(6)
WITH_STACKS, WITH_MEMORY_EVENTS = 1, 2
TEXTS_LIMIT = 32 << 20  # bytes of text remembered before the numbering is restarted
IS_RAW = 1
MEMORY_EVENTS = 4  # place in counts
_int64, _pointer = ctypes.c_int64, ctypes.c_void_p


class _Rows(ctypes.Structure):
    _fields_ = (
        ("count", _int64),
        ("room", _int64),
        ("columns", _int64),
        ("wide", _int64),
        ("values", _pointer * MOST_COLUMNS),
        ("nulls", _int64 * MOST_COLUMNS),
        ("packed", _pointer),
        ("size", _int64),
        ("width", _int64 * MOST_COLUMNS),
        ("values_at", _int64 * MOST_COLUMNS),
        ("valid_at", _int64 * MOST_COLUMNS),
    )


class _Odd(ctypes.Structure):
    _fields_ = (("start", _int64), ("end", _int64), ("ordinal", _int64), ("is_bare", _int64))


class _Text(ctypes.Structure):
    _fields_ = (
        ("hash", ctypes.c_uint64),
        ("start", ctypes.c_uint64),
        ("length", ctypes.c_uint64),
        ("number", _int64),
        ("kind", _int64),
    )


class _Texts(ctypes.Structure):
    _fields_ = (
        ("entries", ctypes.POINTER(_Text)),
        ("count", ctypes.c_size_t),
        ("room", ctypes.c_size_t),
        ("slots", _pointer),
        ("slot_count", ctypes.c_size_t),
        ("bytes", _pointer),
        ("used", ctypes.c_size_t),
        ("size", ctypes.c_size_t),
        ("told", ctypes.c_size_t),
        ("next", _int64),
        ("seed", ctypes.c_uint64),
    )


class _Scanner(ctypes.Structure):
    _fields_ = (
        ("tables", _Rows * TABLES),
        ("counts", _int64 * COUNTS),
        ("events", _int64),
        ("odd", ctypes.POINTER(_Odd)),
        ("odd_count", _int64),
        ("odd_room", _int64),
        ("processes", _int64 * MOST_PROCESSES),
        ("process_count", _int64),
        ("has_fractions", _int64),
        ("has_large", _int64),
        ("has_long_fraction", _int64),
        ("has_odd_times", _int64),
        ("texts", _Texts),
        ("flags", _int64),
    )


class Memory:
    """A piece of memory allocated by the library, freed with the last reference."""

    def __init__(self, found: ctypes.CDLL, address: int, size: int) -> None:
        self._library = found
        self.address = address
        self.size = size

    def __del__(self) -> None:
        self._library.tracedb_release(self.address)


class Column(NamedTuple):
    """The memory of a column: values of ``width`` bytes and the validity bitmap."""

    width: int
    values: int
    valid: int | None
    """None if all values are valid."""


class Table(NamedTuple):
    """The rows of one table that a block gave."""

    rows: int
    columns: list[Column]
    memory: Memory | None
    """None if there are no rows."""


class Odd(NamedTuple):
    """An event left to the Python decoder: its bounds, its number, and whether it lacks a category."""

    start: int
    end: int
    ordinal: int
    is_bare: bool


class Text(NamedTuple):
    """A text met for the first time: a name, or a value as raw JSON."""

    number: int
    is_raw: bool
    source: bytes


@dataclass
class Scan:
    """The result of scanning a block."""

    status: int
    events: int
    tables: list[Table]
    counts: list[int]
    odd: list[Odd]
    processes: list[int]
    texts: list[Text]
    """Later blocks may refer to them, so keep them even if the block itself is rejected."""
    has_fractions: bool
    has_large: bool
    has_long_fraction: bool
    has_odd_times: bool

    @property
    def size(self) -> int:
        """Size of its rows in bytes."""
        return sum(table.memory.size for table in self.tables if table.memory is not None)


FUNCTIONS: tuple[native_library.Function, ...] = (
    ("tracedb_open", ctypes.POINTER(_Scanner), (ctypes.c_uint64, _int64, _int64)),
    ("tracedb_close", None, (ctypes.POINTER(_Scanner),)),
    ("tracedb_release", None, (_pointer,)),
    ("tracedb_forget", None, (ctypes.POINTER(_Scanner),)),
    ("tracedb_scan", ctypes.c_int, (ctypes.POINTER(_Scanner), _pointer, _int64)),
    (
        *("tracedb_feed_open", _pointer),
        (ctypes.c_int, ctypes.c_char_p, _int64, ctypes.c_char_p, _int64, _int64, _int64),
    ),
    ("tracedb_feed_close", None, (_pointer,)),
    ("tracedb_block_open", _pointer, ()),
    ("tracedb_block_close", None, (_pointer,)),
    ("tracedb_fill", ctypes.c_int, (_pointer, _pointer, _int64)),
)


def library() -> ctypes.CDLL | None:
    """Return the library; None if it is missing or does not fit, or if the environment asks for Python."""
    return native_library.library(LIBRARY, ("tracedb_interface", INTERFACE), FUNCTIONS)


def state() -> str:
    """Say which reader is in use, and why."""
    return native_library.state(LIBRARY, library() is not None, "Python")


class Scanner:
    """A scanner of the library, to be used by one thread at a time. Scanning releases the interpreter lock."""

    def __init__(self, found: ctypes.CDLL, options: Options, first_text: int) -> None:
        flags = options.stacks * WITH_STACKS | options.memory_events * WITH_MEMORY_EVENTS
        self.library = found
        self._scanner = found.tracedb_open(int.from_bytes(os.urandom(8)), first_text, flags)
        if not self._scanner:
            raise MemoryError

    def __del__(self) -> None:
        self.library.tracedb_close(self._scanner)

    def scan(self, text: bytes) -> Scan:
        """Scan events separated by commas."""
        return self.scan_at(text, len(text))

    def scan_at(self, text: bytes | int, length: int) -> Scan:
        """Scan the text at an address."""
        if self._scanner.contents.texts.used > TEXTS_LIMIT:
            self.library.tracedb_forget(self._scanner)
        status = self.library.tracedb_scan(self._scanner, text, length)
        if status == NO_MEMORY:
            raise MemoryError
        found = self._scanner.contents
        is_sound = status == SOUND
        return Scan(
            status,
            found.events,
            [_table(self.library, table) for table in found.tables] if is_sound else [],
            list(found.counts),
            [Odd(o.start, o.end, o.ordinal, bool(o.is_bare)) for o in found.odd[: found.odd_count]] if is_sound else [],
            found.processes[: found.process_count] if is_sound else [],
            _new_texts(found.texts),
            bool(found.has_fractions),
            bool(found.has_large),
            bool(found.has_long_fraction),
            bool(found.has_odd_times),
        )


def _table(found: ctypes.CDLL, table: _Rows) -> Table:
    """Take the packed rows of a table over from the scanner, which allocates new ones for the next block."""
    rows, width = table.count, table.columns
    if not rows:
        return Table(0, [], None)
    memory = Memory(found, table.packed, table.size)
    table.packed = None
    places = zip(table.width[:width], table.values_at[:width], table.valid_at[:width], strict=True)
    return Table(rows, [Column(size, values, valid if valid >= 0 else None) for size, values, valid in places], memory)


def _new_texts(texts: _Texts) -> list[Text]:
    """Return the texts added since the last call, also by rejected blocks: later blocks refer to them."""
    entries = texts.entries
    new = []
    for place in range(texts.told, texts.count):
        entry = entries[place]
        source = ctypes.string_at(texts.bytes + entry.start, entry.length)
        new.append(Text(entry.number, entry.kind == IS_RAW, source))
    texts.told = texts.count
    return new
