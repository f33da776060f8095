"""Files that may be compressed, opened as if they were not."""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from tracedb.errors import ReadError

GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
BUFFER = 1 << 20


class _Counted(io.RawIOBase):
    """Tells how many bytes of a file were read."""

    def __init__(self, file: BinaryIO, progress: Callable[[int], None]) -> None:
        self._file = file
        self._progress = progress

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        count = self._file.readinto(buffer)  # type: ignore[attr-defined]
        self._progress(count)
        return int(count)


@contextmanager
def opened(path: Path, progress: Callable[[int], None] = lambda done: None) -> Iterator[BinaryIO]:
    """Open a plain, gzip or zstd file for reading. Raises ``ReadError`` where its stream is damaged."""
    with path.open("rb", buffering=0) as raw:
        magic = raw.read(4)
        raw.seek(0)
        counted = cast(BinaryIO, io.BufferedReader(_Counted(cast(BinaryIO, raw), progress), BUFFER))
        try:
            yield _unpacked(counted, magic)
        except _damages(magic) as error:
            raise ReadError(f"the compressed stream is cut or damaged ({error}); copy the file again") from error


def _damages(magic: bytes) -> tuple[type[Exception], ...]:
    """Return what is raised over a damaged stream."""
    if magic.startswith(GZIP):
        from isal import isal_zlib

        return (EOFError, zlib.error, cast(type[Exception], isal_zlib.error))
    if magic == ZSTD:
        import zstandard

        return (EOFError, zstandard.ZstdError)
    return (EOFError,)


def _unpacked(file: BinaryIO, magic: bytes) -> BinaryIO:
    if magic.startswith(GZIP):
        from isal import igzip

        unpacked: Any = igzip
        return cast(BinaryIO, io.BufferedReader(unpacked.GzipFile(fileobj=file), BUFFER))
    if magic == ZSTD:
        import zstandard

        return cast(BinaryIO, io.BufferedReader(zstandard.ZstdDecompressor().stream_reader(file), BUFFER))
    return file
