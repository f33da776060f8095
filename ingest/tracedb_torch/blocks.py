"""Cutting a trace into its head, blocks of whole events, and its tail, without parsing it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tracedb.errors import ReadError

BLOCK = 1 << 20  # bytes that are decoded at a time: what is alive at once stays small
HEAD_LIMIT = 256 << 20  # a header longer than this is no trace
EVENT_LIMIT = 64 << 20  # nor is one event longer than this
TAIL_LIMIT = 64 << 20  # bytes kept of what follows the events

BOM = b"\xef\xbb\xbf"
EVENTS_KEY = re.compile(rb'(?<!\\)"traceEvents"\s*:\s*\[')
BETWEEN = re.compile(rb"(\s*)\}(\s*),(\s*)\{")
BOUNDARY = re.compile(
    rb'\}\s*,\s*(?=\{\s*"(?:ph|cat|name|pid|tid|ts|dur|args|id|bp|s|cname|sf|tts|bind_id|scope)"\s*:)'
)


@dataclass
class Trace:
    """What stands around the events, filled while the blocks are read."""

    head: bytes = b""
    tail: bytearray = field(default_factory=bytearray)
    is_bare_list: bool = False
    ended: bool = False
    """Whether the end of the event array was seen. Set by whoever parses the last block."""

    def add_tail(self, text: bytes) -> None:
        """Keep what follows the events, up to a limit."""
        room = TAIL_LIMIT - len(self.tail)
        self.tail += text[: max(room, 0)]


def blocks(pieces: Iterable[bytes], trace: Trace) -> Iterator[tuple[bytes, int, bool]]:
    """Yield (text, offset, last): runs of whole events without the array's brackets.

    ``offset`` is the place of the text in the decompressed file. Once ``trace.ended`` is set, what follows goes to
    ``trace.tail``. A cut may be wrong in odd layouts; then the text does not parse and the caller looks closer.
    Raises ``ReadError`` where there is no event array.
    """
    source = iter(pieces)
    buffer, start = _head(source, trace)
    offset = start
    buffer = buffer[start:]
    boundary: tuple[bytes, int, int] | None = None
    for piece in source:
        if trace.ended:
            trace.add_tail(piece)
            continue
        buffer += piece
        if len(buffer) < BLOCK:
            continue
        boundary = boundary or _boundary(buffer)
        cut = _cut(buffer, boundary)
        if cut is None:
            if len(buffer) > EVENT_LIMIT:
                raise ReadError(
                    f"an event at byte {offset} is longer than {EVENT_LIMIT >> 20} MB; this is no profiler trace"
                )
            continue
        end, resume = cut
        yield buffer[:end], offset, False
        buffer = buffer[resume:]
        offset += resume
        if trace.ended:
            trace.add_tail(buffer)
            buffer = b""
    if not trace.ended:
        yield buffer, offset, True


def _head(source: Iterator[bytes], trace: Trace) -> tuple[bytes, int]:
    """Read up to the event array; return what was read and where the events begin."""
    buffer = b""
    looked = 0
    for piece in source:
        buffer += piece
        first = buffer.removeprefix(BOM).lstrip()[:1]
        if first == b"[":
            trace.is_bare_list = True
            return buffer, buffer.index(b"[") + 1
        if first not in (b"{", b""):
            break
        found = EVENTS_KEY.search(buffer, max(0, looked - 64))
        if found:
            trace.head = buffer[: found.start()]
            return buffer, found.end()
        looked = len(buffer)
        if looked > HEAD_LIMIT:
            break
    raise ReadError("no traceEvents array was found; this is no Kineto trace, or it is cut before its first event")


def _boundary(buffer: bytes) -> tuple[bytes, int, int] | None:
    """Learn from the first two events what stands between events: (literal, length up to ``}``, length up to ``,``)."""
    found = BETWEEN.search(buffer)
    if found is None:
        return None
    return found[0], found.end(1) + 1 - found.start(), found.end(2) + 1 - found.start()


def _cut(buffer: bytes, boundary: tuple[bytes, int, int] | None) -> tuple[int, int] | None:
    """Return (end of the last whole event but one, where the next text begins), or None if no boundary is in sight."""
    if boundary is not None:
        literal, closing, comma = boundary
        place = buffer.rfind(literal)
        if place >= 0:
            return place + closing, place + comma
    last = None
    for last in BOUNDARY.finditer(buffer):  # noqa: B007 - the last one is wanted
        pass
    return None if last is None else (last.start() + 1, last.end())
