"""Cutting a trace into its head, blocks of whole events, and its tail, without parsing it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from tracedb.errors import ReadError

BLOCK = 2 << 20  # bytes that are decoded at a time: what is alive at once stays small
HEAD_LIMIT = 64 << 20  # a header longer than this is no trace
EVENT_LIMIT = 64 << 20  # nor is one event longer than this
TAIL_LIMIT = 16 << 20  # bytes kept of what follows the events

BOM = b"\xef\xbb\xbf"
EVENTS_KEY = re.compile(rb'(?<!\\)"traceEvents"\s*:\s*\[')
FIRST = re.compile(rb"(?:\xef\xbb\xbf)?\s*(\S)")
BETWEEN = re.compile(rb'(\s*),\s*\{\s*"\w+"')
BOUNDARY = re.compile(
    rb'\}\s*,(?=\s*\{\s*"(?:ph|cat|name|pid|tid|ts|dur|args|id|bp|s|cname|sf|tts|bind_id|scope)"\s*:)'
)
END = re.compile(rb"\}\s*\]")
OVERLAP = 4 << 10  # bytes looked at again, in which a boundary may have begun

_json = json.JSONDecoder(strict=False)


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


class Edge(NamedTuple):
    """What stands between two events, up to the second one's first key."""

    text: bytes
    closing: int
    """Length up to the bracket that closes the first event, and with it."""
    comma: int
    """Length up to the comma, and with it."""


def blocks(pieces: Iterable[bytes], trace: Trace) -> Iterator[tuple[bytes, int, bool]]:
    """Yield (text, offset, last): runs of whole events without the array's brackets.

    ``offset`` is the place of the text in the decompressed file; between a text and the next stood a comma, and blanks
    before it. Once ``trace.ended`` is set, what follows goes to ``trace.tail``. A cut may be wrong where objects stand
    in lists inside an event; then the text does not parse and the caller puts it together again with the next.
    Raises ``ReadError`` where there is no event array.
    """
    source = iter(pieces)
    buffer, start = head(source, trace)
    yield from cut(buffer[start:], start, source, trace)


def cut(
    buffer: bytes, offset: int, source: Iterator[bytes], trace: Trace, edge: Edge | None = None
) -> Iterator[tuple[bytes, int, bool]]:
    """Yield the blocks of ``buffer``, which begins with an event at ``offset``, and of the pieces that follow it."""
    waiting = [buffer]
    size, wanted, searched = len(buffer), BLOCK, 0
    for piece in source:
        if trace.ended:  # another thread may set it at any moment
            for text in (*waiting, piece):
                trace.add_tail(text)
            waiting.clear()
            continue
        waiting.append(piece)
        size += len(piece)
        if size < wanted:
            continue
        buffer = b"".join(waiting)
        edge = edge or edge_of(buffer)
        found = _last_edge(buffer, edge, searched)
        if found is None:
            if size > EVENT_LIMIT:
                break
            waiting, wanted, searched = [buffer], 2 * size, max(size - OVERLAP, 0)
            continue
        end, resume = found
        yield buffer[:end], offset, False
        buffer = buffer[resume:]
        offset += resume
        waiting = [buffer]
        size, wanted, searched = len(buffer), BLOCK, 0
    buffer = b"".join(waiting)
    if trace.ended:
        trace.add_tail(buffer)
        return
    if size > EVENT_LIMIT and not END.search(buffer):
        raise ReadError(f"an event at byte {offset} is longer than {EVENT_LIMIT >> 20} MB; this is no profiler trace")
    for _ in source:
        pass  # so much after the events that no more of it is kept
    yield buffer, offset, True


def head(source: Iterator[bytes], trace: Trace) -> tuple[bytes, int]:
    """Read up to the event array; return what was read and where the events begin."""
    buffer = bytearray()
    looked = 0
    for piece in source:
        buffer += piece
        first = FIRST.match(buffer)
        if first and first[1] == b"[":
            trace.is_bare_list = True
            return bytes(buffer), first.end()
        if first and first[1] != b"{":
            break
        found = EVENTS_KEY.search(buffer, max(0, looked - OVERLAP))
        if found:
            trace.head = bytes(buffer[: found.start()])
            return bytes(buffer), found.end()
        looked = len(buffer)
        if looked > HEAD_LIMIT:
            break
    raise ReadError("no traceEvents array was found; this is no Kineto trace, or it is cut before its first event")


def edge_of(buffer: bytes) -> Edge | None:
    """Learn from the first two events what stands between events; None where the first is malformed."""
    text = buffer[:BLOCK].decode("latin-1")  # one character a byte
    try:
        _, end = _json.raw_decode(text, len(text) - len(text.lstrip()))
    except (ValueError, RecursionError):
        return None
    found = BETWEEN.match(buffer, end)
    if found is None:
        return None
    start = len(buffer[: end - 1].rstrip())
    return Edge(buffer[start : found.end()], end - start, found.end(1) + 1 - start)


def _last_edge(buffer: bytes, edge: Edge | None, searched: int) -> tuple[int, int] | None:
    """Return (end of the last whole event but one, place after the comma), or None if no edge of events is in sight.

    There was none in the first ``searched`` bytes.
    """
    if edge is not None:
        place = buffer.rfind(edge.text, searched)
        if place >= 0:
            return place + edge.closing, place + edge.comma
    last = None
    for last in BOUNDARY.finditer(buffer, searched):  # noqa: B007 - the last one is wanted
        pass
    return None if last is None else (last.start() + 1, last.end())
