"""Files that may be compressed or UTF-16, opened as if they were plain UTF-8.

A damaged stream ends where the damage begins.
"""

from __future__ import annotations

import codecs
import io
import shutil
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from tracedb.storage.spill_folder import temporary_folder

GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
BUFFER = 1 << 20
PIECE = 1 << 16


class _Counted(io.RawIOBase):
    """Tells how many bytes of a file were read."""

    def __init__(self, file: io.FileIO, progress: Callable[[int], None]) -> None:
        self._file = file
        self._progress = progress

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        read = self._file.readinto(buffer)
        self._progress(read)
        return read


class _Unpacked(io.RawIOBase):
    """A decompressed stream, which ends where it is damaged, and then says so."""

    def __init__(self, stream: BinaryIO, errors: tuple[type[Exception], ...], damages: list[str]) -> None:
        self._stream = stream
        self._errors = errors
        self._damages = damages
        self._is_over = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = b"" if self._is_over else self._stream.read(min(len(buffer), PIECE))
        except self._errors as error:
            self._damages.append(str(error) or "it ends too early")
            self._is_over, data = True, b""
        buffer[: len(data)] = data
        return len(data)


class _Recoded(io.RawIOBase):
    """UTF-16 as UTF-8; what is no UTF-16 is replaced."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-16")(errors="replace")
        self._ready = b""
        self._is_over = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready and not self._is_over:
            data = self._stream.read(PIECE)
            self._is_over = not data
            self._ready = self._decoder.decode(data, self._is_over).encode()
        taken = min(len(buffer), len(self._ready))
        buffer[:taken] = self._ready[:taken]
        self._ready = self._ready[taken:]
        return taken


@contextmanager
def opened(
    path: Path, progress: Callable[[int], None] = lambda done: None, damages: list[str] | None = None
) -> Iterator[BinaryIO]:
    """Open a plain, gzip or zstd file for reading; what is wrong with its stream is added to ``damages``.

    A byte order mark is passed over; that of UTF-16 makes the bytes UTF-8.
    """
    with path.open("rb", buffering=0) as raw:
        magic = raw.read(4)
        raw.seek(0)
        counted = cast(BinaryIO, io.BufferedReader(_Counted(raw, progress), BUFFER))
        yield _recoded(_unpacked(counted, magic, [] if damages is None else damages))


@contextmanager
def on_disk(path: Path) -> Iterator[Path]:
    """Give a file that can be opened by its path: of a compressed one, an unpacked copy that is removed again."""
    with path.open("rb") as file:
        is_packed = file.read(4).startswith((GZIP, ZSTD))
    if not is_packed:
        yield path
        return
    with temporary_folder() as folder:
        copy = Path(folder) / path.stem
        with opened(path) as packed, copy.open("wb") as out:
            shutil.copyfileobj(packed, out, BUFFER)
        yield copy


def _recoded(file: BinaryIO) -> BinaryIO:
    first = cast(io.BufferedReader, file).peek(4)
    if first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return cast(BinaryIO, io.BufferedReader(_Recoded(file), BUFFER))
    if first.startswith(codecs.BOM_UTF8):
        file.read(len(codecs.BOM_UTF8))
    return file


def _unpacked(file: BinaryIO, magic: bytes, damages: list[str]) -> BinaryIO:
    stream: Any
    errors: tuple[type[Exception], ...]
    if magic.startswith(GZIP):
        from isal import igzip, isal_zlib

        opener: Any = igzip
        stream = opener.GzipFile(fileobj=file)
        errors = (EOFError, OSError, zlib.error, cast(type[Exception], isal_zlib.error))
    elif magic == ZSTD:
        import zstandard

        stream = zstandard.ZstdDecompressor().stream_reader(file)
        errors = (EOFError, zstandard.ZstdError)
    else:
        return file
    return cast(BinaryIO, io.BufferedReader(_Unpacked(stream, errors, damages), BUFFER))
