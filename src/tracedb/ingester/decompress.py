"""Read a file that may be compressed or UTF-16: decompressed piece by piece, as UTF-8, in bounded memory.

Files are plain, gzip (also with several members) or zstd (also with several frames). A damaged stream ends at the
damage, and ``fault`` says so.
"""

from __future__ import annotations

import io
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE, BOM_UTF32_BE, BOM_UTF32_LE, getincrementaldecoder
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from io import FileIO
from pathlib import Path
from typing import Any, BinaryIO, cast

import zstandard

from tracedb.errors import ReadError
from tracedb.ingester import gzip_members
from tracedb.storage.spill_folder import temporary_folder

GZIP = gzip_members.MAGIC
ZSTD = b"\x28\xb5\x2f\xfd"
ENCODINGS = (
    ("utf-32", (BOM_UTF32_LE, BOM_UTF32_BE)),
    ("utf-16", (BOM_UTF16_LE, BOM_UTF16_BE)),
    ("utf-16-le", (b"{\0", b"[\0")),
    ("utf-16-be", (b"\0{", b"\0[")),
)
"""Encodings by byte order mark; UTF-32 comes first, since its mark begins with that of UTF-16."""
MOST_RATIO = 250
RATIO_FROM = 64 << 20
"""Unpacked bytes from which a ratio above ``MOST_RATIO`` is no trace; traces compress 10 to 50 times."""
PIECE = 1 << 20  # bytes yielded at a time: fits the caches, and bounds memory for any compression ratio
FEED = 64 << 10  # bytes read at a time


def is_packed(start: bytes) -> bool:
    """Whether a file beginning with these bytes is compressed."""
    return start.startswith((GZIP, ZSTD))


def is_too_much(unpacked: int, packed: int) -> bool:
    """Whether this many bytes from ``packed`` ones indicate a file made to fill a disk."""
    return unpacked > RATIO_FROM and unpacked > MOST_RATIO * packed


def encoding_of(start: bytes) -> str | None:
    """Return the encoding of a text if its first bytes mark it as UTF-16 or UTF-32, as Windows shells write it."""
    for encoding, marks in ENCODINGS:
        if any(start.startswith(mark) for mark in marks):
            return encoding
    return None


class Plain:
    """An open file that is not compressed; yields its pieces from its current position."""

    def __init__(self, file: FileIO, path: Path, progress: Callable[[int], None]) -> None:
        self.path = path
        self.progress = progress
        """Called with the bytes read via the file descriptor; the pieces count their own."""
        self.file = file

    @property
    def number(self) -> int:
        """The file descriptor."""
        return self.file.fileno()

    def __iter__(self) -> Iterator[bytes]:
        while data := self.file.read(PIECE):
            self.progress(len(data))
            yield data

    def close(self) -> None:
        """Close the file."""
        self.file.close()


class Stream:
    """The decompressed bytes of one file, read once.

    After reading, ``fault`` says what was wrong with the compression; None if nothing was. ``is_complete``: whether all
    content was read despite a fault.
    """

    def __init__(self, path: Path, progress: Callable[[int], None] = lambda done: None) -> None:
        self.path = path
        self.fault: str | None = None
        self.is_complete = True
        self._progress = progress

    def pieces(self) -> Generator[bytes]:
        """Yield the content as UTF-8 in pieces of about ``PIECE`` bytes at most. Raises OSError."""
        pieces = self.stored()
        try:
            first = next(pieces, b"")
            encoding = encoding_of(first)
            if encoding is None:
                yield first
                yield from pieces
                return
            decoder = getincrementaldecoder(encoding)(errors="replace")
            yield decoder.decode(first).encode()
            for piece in pieces:
                yield decoder.decode(piece).encode()
            yield decoder.decode(b"", final=True).encode()
        finally:
            pieces.close()

    def stored(self) -> Generator[bytes]:
        """Yield the content in its own encoding."""
        with self.path.open("rb") as file:
            magic = file.read(4)
            file.seek(0)
            if magic.startswith(GZIP):
                yield from _gathered(gzip_members.pieces(self.path, file, PIECE, self._progress, self._damaged))
            elif magic == ZSTD:
                yield from _gathered(self._zstd(file))
            else:
                while data := file.read(PIECE):
                    self._progress(len(data))
                    yield data

    def plain(self) -> Plain | None:
        """Open the file if it is not compressed. Raises OSError."""
        file = self.path.open("rb", buffering=0)
        magic = file.read(4)
        if is_packed(magic) or encoding_of(magic):
            file.close()
            return None
        file.seek(0)
        return Plain(file, self.path, self._progress)

    def _zstd(self, file: BinaryIO) -> Iterator[bytes]:
        counted = 0
        with zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True) as reader:
            while True:
                try:
                    data = reader.read1(FEED)
                except zstandard.ZstdError as error:
                    if counted and "frame descriptor" in str(error):
                        self._damaged("bytes that are not zstd follow the last zstd frame", is_complete=True)
                    else:
                        self._damaged(f"the zstd data is damaged ({error})", is_complete=False)
                    return
                position = file.tell()
                self._progress(position - counted)
                counted = position
                if not data:
                    return
                yield data

    def _damaged(self, fault: str, is_complete: bool) -> None:
        self.fault, self.is_complete = fault, is_complete


def _gathered(parts: Iterator[bytes]) -> Iterator[bytes]:
    """Join small parts into pieces."""
    waiting: list[bytes] = []
    size = 0
    for part in parts:
        waiting.append(part)
        size += len(part)
        if size >= PIECE // 2:
            yield b"".join(waiting)
            waiting.clear()
            size = 0
    if waiting:
        yield b"".join(waiting)


def start_of(path: Path, size: int = PIECE) -> bytes:
    """Return up to ``size`` first bytes of the content, as far as readable. Raises OSError."""
    collected = b""
    for piece in Stream(path).pieces():
        collected += piece
        if len(collected) >= size:
            break
    return collected[:size]


class _Counted(io.RawIOBase):
    """A plain file that counts the bytes read."""

    def __init__(self, file: FileIO, progress: Callable[[int], None]) -> None:
        self._file = file
        self._progress = progress

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        read = self._file.readinto(buffer) or 0
        self._progress(read)
        return read

    def close(self) -> None:
        self._file.close()
        super().close()


class _Unpacked(io.RawIOBase):
    """The content of a stream as a file object."""

    def __init__(self, stream: Stream, faults: list[str]) -> None:
        self._stream = stream
        self._pieces = stream.pieces()
        self._faults = faults
        self._rest = memoryview(b"")
        self._is_over = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest and not self._is_over:
            piece = next(self._pieces, None)
            self._rest, self._is_over = memoryview(piece or b""), piece is None
            if self._is_over and self._stream.fault:
                self._faults.append(self._stream.fault)
        taken = min(len(buffer), len(self._rest))
        buffer[:taken] = self._rest[:taken]
        self._rest = self._rest[taken:]
        return taken

    def close(self) -> None:
        self._pieces.close()
        super().close()


@contextmanager
def opened(
    path: Path, progress: Callable[[int], None] = lambda done: None, faults: list[str] | None = None
) -> Iterator[BinaryIO]:
    """Open a file as if it were plain UTF-8; compression faults are appended to ``faults``. Raises OSError.

    A byte order mark is skipped.
    """
    stream = Stream(path, progress)
    plain = stream.plain()
    raw = _Unpacked(stream, [] if faults is None else faults) if plain is None else _Counted(plain.file, progress)
    with closing(io.BufferedReader(raw, PIECE)) as file:
        if file.peek(len(BOM_UTF8)).startswith(BOM_UTF8):
            file.read(len(BOM_UTF8))
        yield cast(BinaryIO, file)


@contextmanager
def on_disk(path: Path) -> Iterator[Path]:
    """Yield a file that can be opened by path: for a compressed one, an unpacked copy that is removed afterwards.

    Raises ``ReadError`` for a file that unpacks to more than any trace does.
    """
    with path.open("rb") as file:
        start = file.read(4)
    if not is_packed(start):
        yield path
        return
    with temporary_folder() as folder:
        copy = Path(folder) / path.stem
        _unpack(path, copy)
        yield copy


def _unpack(path: Path, copy: Path) -> None:
    packed, unpacked = path.stat().st_size, 0
    with closing(Stream(path).stored()) as pieces, copy.open("wb") as out:
        for piece in pieces:
            unpacked += len(piece)
            if is_too_much(unpacked, packed):
                raise ReadError(
                    f"unpacks to more than {MOST_RATIO} times its size, as no traces do; if it is sound, unpack it and "
                    "ingest the file"
                )
            out.write(piece)
