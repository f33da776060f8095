"""Decompress a gzip file of one or several members, up to the first damaged byte."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from isal import isal_zlib

MAGIC = b"\x1f\x8b"
FEED = 64 << 10  # bytes read at a time
STEP = 4 << 10  # compressed bytes decompressed at a time

Damaged = Callable[[str, bool], None]
"""Called with what is wrong, and whether all content was read despite it."""


def pieces(path: Path, file: BinaryIO, most: int, progress: Callable[[int], None], damaged: Damaged) -> Iterator[bytes]:
    """Yield the content in parts of up to ``most`` bytes. ``file``: the open file; ``progress`` gets bytes read."""
    member = isal_zlib.decompressobj(wbits=31)
    in_member = False
    pending = b""
    taken = begin = given = 0  # bytes of the file, its bytes before this member, and the member's output
    steps = _steps(file, progress)
    while True:
        if not pending:
            pending = next(steps, b"")
            taken += len(pending)
        if not pending:
            break
        if not in_member:
            pending = pending.lstrip(b"\0")  # padding between members
            if not pending:
                continue
            if not MAGIC.startswith(pending[:2]):
                damaged("bytes that are not gzip follow the last gzip member", True)
                return  # like gzip itself
            in_member = True
            begin, given = taken - len(pending), 0
        try:
            data = member.decompress(pending, most)
        except isal_zlib.error as error:  # type: ignore[misc]
            damaged(f"the gzip data is damaged ({error})", False)
            yield from _up_to_damage(path, begin, given)
            return
        if data:
            given += len(data)
            yield data
        if member.eof:
            pending = member.unused_data
            member = isal_zlib.decompressobj(wbits=31)
            in_member = False
        else:
            pending = member.unconsumed_tail
    if in_member:
        damaged("the gzip stream is cut", False)


def _steps(file: BinaryIO, progress: Callable[[int], None]) -> Iterator[bytes]:
    while data := file.read(FEED):
        progress(len(data))
        for start in range(0, len(data), STEP):
            yield data[start : start + STEP]


def _up_to_damage(path: Path, begin: int, given: int) -> Iterator[bytes]:
    """Yield the rest of a damaged member, which starts at ``begin``, after its first ``given`` bytes.

    The fast library discards its output of the step that failed; zlib can be fed byte by byte.
    """
    with path.open("rb") as file:
        file.seek(begin)
        member = zlib.decompressobj(wbits=31)
        while data := file.read(STEP):
            before = member.copy()
            try:
                parts = [member.decompress(data)]
                is_over = member.eof
            except zlib.error:
                parts, is_over = _byte_by_byte(before, data), True
            for part in parts:
                if len(part) > given:
                    yield part[given:]
                given = max(given - len(part), 0)
            if is_over:
                return


def _byte_by_byte(member: zlib._Decompress, data: bytes) -> list[bytes]:
    """Return the output up to the first faulty byte."""
    parts = []
    for place in range(len(data)):
        try:
            parts.append(member.decompress(data[place : place + 1]))
        except zlib.error:
            break
    return parts
