"""An uncompressed file that the C library reads and splits into blocks."""

from __future__ import annotations

import ctypes
import os

from tracedb.ingester.decompress import Plain
from tracedb_torch.scan import native_scanner
from tracedb_torch.split.blocks import Edge

_size, _int64, _pointer = ctypes.c_size_t, ctypes.c_int64, ctypes.c_void_p


class _Feed(ctypes.Structure):
    _fields_ = (("rest", _pointer), ("size", _size), ("room", _size), ("fault", _int64))  # the rest is private to C


class _Block(ctypes.Structure):
    _fields_ = (("bytes", _pointer), ("room", _size), ("length", _int64), ("passed", _int64), ("taken", _int64))


class Feed:
    """Reads an open file from its position, one thread at a time. Reading releases the interpreter lock."""

    def __init__(self, library: ctypes.CDLL, source: Plain, start: bytes, edge: Edge) -> None:
        """``start``: bytes already read, from an event on. ``edge``: the text between events."""
        self.library = library
        self._path = source.path
        self._address = library.tracedb_feed_open(
            source.number, start, len(start), edge.text, len(edge.text), edge.closing, edge.comma
        )
        if not self._address:
            raise MemoryError
        self._feed = _Feed.from_address(self._address)

    def __del__(self) -> None:
        if getattr(self, "_address", None):
            self.library.tracedb_feed_close(self._address)

    def fill(self, block: Block, wanted: int) -> bool:
        """Fill a block of about ``wanted`` bytes; False at the end of the file or if no event ends in them.

        Raises OSError.
        """
        status = self.library.tracedb_fill(self._address, block.address, wanted)
        if status == native_scanner.NO_MEMORY:
            raise MemoryError
        if status == native_scanner.UNREADABLE:
            raise OSError(self._feed.fault, os.strerror(self._feed.fault), str(self._path))
        return bool(status == native_scanner.SOUND)

    def rest(self) -> bytes:
        """Return bytes that were read but belong to no block."""
        return ctypes.string_at(self._feed.rest, self._feed.size)


class Block:
    """A run of whole events; one thread refills it."""

    def __init__(self, feed: Feed) -> None:
        self._library = feed.library
        self.address = self._library.tracedb_block_open()
        if not self.address:
            raise MemoryError
        self._block = _Block.from_address(self.address)

    def __del__(self) -> None:
        if getattr(self, "address", None):
            self._library.tracedb_block_close(self.address)

    @property
    def passed(self) -> int:
        """Its bytes plus those up to the next event."""
        return int(self._block.passed)

    @property
    def taken(self) -> int:
        """Bytes read from the file for it, even if they did not fill it."""
        return int(self._block.taken)

    @property
    def place(self) -> tuple[int, int]:
        """Its address and length."""
        return self._block.bytes, self._block.length

    def text(self) -> bytes:
        """Return a copy."""
        return ctypes.string_at(*self.place)
