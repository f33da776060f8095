"""Read a CSV file as blocks of columns.

The compiled parser reads plain blocks, Arrow's parser blocks with regular quoting, and ``quoted_records`` everything
else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from io import BufferedIOBase
from math import nan
from queue import Empty, Queue
from threading import Event, Thread
from typing import BinaryIO, cast

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv

from tracedb_rocprof.csv import native_parser
from tracedb_rocprof.csv.headers import Header
from tracedb_rocprof.csv.quoted_records import Reader, unquoted
from tracedb_rocprof.missing import BAD

BLOCK_BYTES = 4 << 20
QUOTE, COMMA, NEWLINE, RETURN = b'",\n\r'
VALUE = "counter_value"
LARGEST = 1 << 63
LEAST = b"-9223372036854775808"
"""Written by rocprofv3 for "no value"; Arrow would parse it as a number."""
OUTSIDE = re.compile(rb'"[^"]*"')
WHOLE = re.compile(r"[-+]?\d{1,40}", re.ASCII)
MOST_LINES_BACK = 1_000
ROOM_FOR_REST = 1 << 16
"""Buffer space for the incomplete last record of the previous block, if it fits."""


@dataclass(frozen=True)
class Block:
    """The columns of a block: texts as dictionaries, numbers as 64-bit integers (counter values as double)."""

    columns: dict[str, pa.Array]
    rows: int
    unreadable: int = 0
    example: str = ""
    fields: int = 0
    """Number of fields of the first unreadable line."""
    ends_unreadable: bool = False
    """Whether the last line is unreadable and not terminated."""
    is_undecided: bool = False
    """Whether quoted texts are stored as written, including inner quotes."""
    is_plain: bool = False
    """Whether all numbers are non-negative."""


class Parser:
    """Parses bytes that begin and end with a record into columns."""

    def __init__(self, header: Header) -> None:
        self._header = header
        self._reader = Reader(header)
        found = None if VALUE in header.used else native_parser.library()
        self._plain = native_parser.PlainParser(found, header) if found else None
        self._kinds = {name: self._kind(name) for name in header.used}
        self._options = pa_csv.ConvertOptions(
            include_columns=list(header.used), column_types=self._kinds, strings_can_be_null=False, null_values=[""]
        )

    def _kind(self, column: str) -> pa.DataType:
        if self._header.is_text(column):
            return pa.dictionary(pa.int32(), pa.string())
        return pa.float64() if column == VALUE else pa.int64()

    def is_whole(self, line: bytes) -> bool:
        """Whether a line is a complete record."""
        return self._reader.is_whole(line)

    def parse(self, block: bytes | memoryview) -> Block:
        """Return the columns of a block; unreadable lines are reported, not raised."""
        if self._plain and (made := self._plain.parse(block)):
            return Block(made[1], made[0], is_plain=True)
        data = bytes(block)
        lines = _count(data, NEWLINE) + (not data.endswith(b"\n"))
        if LEAST not in data and _is_clean(data):
            try:
                return self._fast(data, lines if self._is_plain(data, lines) else None)
            except (pa.ArrowInvalid, pa.ArrowKeyError):
                pass
        return self._slow(data)

    def _is_plain(self, data: bytes, lines: int) -> bool:
        """Whether every line of a block is a record: all have as many quotes as the first."""
        if b"\r" in data:
            returns = data.count(b"\r")
            if returns != data.count(b"\r\n") or returns < lines - 1:
                return False
        first = data[: data.find(b"\n") + 1 or len(data)]
        return _count(data, QUOTE) == lines * first.count(b'"')

    def _fast(self, data: bytes, lines: int | None) -> Block:
        table = pa_csv.read_csv(
            pa.BufferReader(data),
            pa_csv.ReadOptions(column_names=self._header.columns, block_size=len(data) + 1, use_threads=False),
            pa_csv.ParseOptions(newlines_in_values=lines is None),
            self._options,
        )
        if lines is not None and table.num_rows != lines:
            raise pa.ArrowInvalid("some lines are empty")
        columns = {name: _whole(table.column(name)) for name in self._header.used}
        return Block(columns, table.num_rows)

    def _slow(self, data: bytes) -> Block:
        found = self._reader.read(data)
        columns = {}
        for name, values in zip(self._header.used, found.columns, strict=True):
            texts = [unquoted(value).decode("utf-8", errors="replace") for value in values]
            if self._header.is_text(name):
                columns[name] = pa.array(texts, pa.string()).dictionary_encode()
            elif name == VALUE:
                columns[name] = pa.array(map(_decimal, texts), pa.float64())
            else:
                columns[name] = pa.array(map(_number, texts), pa.int64())
        rows = len(found.columns[0])
        example = found.unreadable[0][:80].decode("utf-8", errors="replace").strip() if found.unreadable else ""
        fields = OUTSIDE.sub(b"", found.unreadable[0]).count(b",") + 1 if found.unreadable else 0
        is_open = bool(found.unreadable) and data.endswith(found.unreadable[-1]) and not data.endswith(b"\n")
        return Block(columns, rows, len(found.unreadable), example, fields, is_open, is_undecided=True)


def _count(data: bytes, letter: int) -> int:
    """Count a byte in the data; faster than ``bytes.count`` if it is frequent."""
    return int(np.count_nonzero(np.frombuffer(data, np.uint8) == letter))


def _whole(column: pa.ChunkedArray) -> pa.Array:
    if column.num_chunks == 1:
        return column.chunk(0)
    if pa.types.is_dictionary(column.type):
        column = column.unify_dictionaries()
    return column.combine_chunks() if column.num_chunks else pa.array([], column.type)


def _number(text: str) -> int | None:
    """Return a 64-bit integer; None for an empty field, ``BAD`` for anything else."""
    text = text.strip()
    if not text:
        return None
    value = int(text) if WHOLE.fullmatch(text) else BAD
    return value if -LARGEST < value < LARGEST else BAD


def _decimal(text: str) -> float | None:
    """Return a number; None for an empty field, NaN for anything else."""
    try:
        return float(text) if text else None
    except ValueError:
        return nan


def _is_clean(data: bytes) -> bool:
    """Whether quotes alternately open and close a field."""
    array = np.frombuffer(data, np.uint8)
    places = np.flatnonzero(array == QUOTE)
    if not len(places):
        return True
    if len(places) % 2:
        return False
    before = np.where(places > 0, array[places - 1], NEWLINE)
    after = np.where(places + 1 < len(array), array[np.minimum(places + 1, len(array) - 1)], NEWLINE)
    opens = (before == COMMA) | (before == NEWLINE)
    closes = (after == COMMA) | (after == NEWLINE) | (after == RETURN)
    in_turn = opens[::2] & ~closes[::2] & closes[1::2] & ~opens[1::2]
    return bool(in_turn.all())


class _Buffers:
    """Reusable memory for blocks: the system zeroes new memory, which takes as long as reading.

    There is one buffer for each parser and two for the reader.
    """

    def __init__(self, parsers: int) -> None:
        self._free: Queue[bytearray] = Queue()
        for _ in range(parsers + 2):  # the reader holds two while it moves an incomplete record
            self._free.put(bytearray())

    def take(self, size: int) -> bytearray:
        """Return a buffer of at least that size; waits until one is free."""
        found = self._free.get()
        return found if len(found) >= size else bytearray(max(size, BLOCK_BYTES + ROOM_FOR_REST))

    def give(self, block: bytes | memoryview) -> None:
        """Release the buffer of a block."""
        if isinstance(block, memoryview):
            self._free.put(cast(bytearray, block.obj))


def _pieces(file: BinaryIO, parser: Parser, buffers: _Buffers) -> Iterator[bytes | memoryview]:
    """Yield a file from its position in pieces that begin and end with a record."""
    room, filled, wanted = buffers.take(BLOCK_BYTES), 0, BLOCK_BYTES
    while True:
        if len(room) < filled + wanted:
            room = room[:filled] + bytes(wanted)
        view = memoryview(room)
        read = cast(BufferedIOBase, file).readinto(view[filled : filled + wanted])
        if not read:
            break
        filled += read
        cut = _last_end(room, filled, parser)
        if cut:
            following = buffers.take(filled - cut + BLOCK_BYTES)
            following[: filled - cut] = view[cut:filled]
            yield view[:cut]
            room, filled, wanted = following, filled - cut, BLOCK_BYTES
        else:
            wanted = max(BLOCK_BYTES, filled)  # doubled, so that one huge record is read in linear time
    rest = bytes(room[:filled])
    if rest.strip():
        yield rest


def _last_end(data: bytearray, size: int, parser: Parser) -> int:
    """Return the end of the last record that surely ends within the data; 0 if none does."""
    end = data.rfind(b"\n", 0, size) + 1
    for _ in range(MOST_LINES_BACK):
        start = data.rfind(b"\n", 0, max(end - 1, 0)) + 1
        if not end or parser.is_whole(bytes(data[start:end])):
            return end
        end = start
    return 0


def parsed(file: BinaryIO, parser: Parser, workers: int, ahead: int = 1) -> Iterator[Block]:
    """Yield a file from its position in blocks, which threads read and parse ahead of the consumer."""
    buffers = _Buffers(workers)
    blocks = _pieces(file, parser, buffers)

    def parse(data: bytes | memoryview) -> Block:
        try:
            return parser.parse(data)
        finally:
            buffers.give(data)

    if workers < 2:
        yield from map(parse, blocks)
        return
    waiting: Queue[Future[Block] | BaseException | None] = Queue(workers + ahead)
    is_over = Event()
    with ThreadPoolExecutor(workers, "tracedb-csv") as pool:

        def read() -> None:
            try:
                for data in blocks:
                    if is_over.is_set():
                        return
                    waiting.put(pool.submit(parse, data))
                waiting.put(None)
            except BaseException as error:  # noqa: BLE001 - raised again where the blocks are taken
                waiting.put(error)

        reader = Thread(target=read, name="tracedb-csv-read", daemon=True)
        reader.start()
        try:
            while (found := waiting.get()) is not None:
                if isinstance(found, BaseException):
                    raise found
                yield found.result()
        finally:
            is_over.set()
            while reader.is_alive():  # it may be blocked on a full queue
                with suppress(Empty):
                    waiting.get(timeout=0.02)
