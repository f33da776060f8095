"""Split a trace into its head, blocks of whole events, and its tail, without parsing it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from tracedb.errors import ReadError

BLOCK = 2 << 20  # bytes decoded at a time; bounds the memory in use
HEAD_LIMIT = 64 << 20  # no trace has a longer header
EVENT_LIMIT = 64 << 20  # no trace has a longer event
TAIL_LIMIT = 16 << 20  # bytes kept of the text after the events

BOM = b"\xef\xbb\xbf"
EVENTS_KEY = re.compile(rb'(?<!\\)"traceEvents"\s*:\s*\[')
FIRST = re.compile(rb"(?:\xef\xbb\xbf)?\s*(\S)")
BETWEEN = re.compile(rb'(\s*),\s*\{\s*"\w+"')
BOUNDARY = re.compile(
    rb'\}\s*,(?=\s*\{\s*"(?:ph|cat|name|pid|tid|ts|dur|args|id|bp|s|cname|sf|tts|bind_id|scope)"\s*:)'
)
END = re.compile(rb"\}\s*\]")
OVERLAP = 4 << 10  # bytes searched again, in which a boundary may have begun

_json = json.JSONDecoder(strict=False)


@dataclass
class Trace:
    """The text around the events, filled while the blocks are read."""

    head: bytes = b""
    tail: bytearray = field(default_factory=bytearray)
    is_bare_list: bool = False
    ended: bool = False
    """Whether the end of the event array was found. Set by the parser of the last block."""

    def add_tail(self, text: bytes) -> None:
        """Append text after the events, up to a limit."""
        room = TAIL_LIMIT - len(self.tail)
        self.tail += text[: max(room, 0)]


class Edge(NamedTuple):
    """The text between two events, up to the second one's first key."""

    text: bytes
    closing: int
    """Length up to and including the bracket that closes the first event."""
    comma: int
    """Length up to and including the comma."""


def blocks(pieces: Iterable[bytes], trace: Trace) -> Iterator[tuple[bytes, int, bool]]:
    """Yield (text, offset, last): runs of whole events without the array's brackets.

    ``offset`` is the text's position in the decompressed file; a comma, perhaps after white space, separates two texts.
    Once ``trace.ended`` is set, the rest goes to ``trace.tail``. A split may be wrong where an event contains lists of
    objects; then the text does not parse and the caller joins it with the next one. Raises ``ReadError`` if there is no
    event array.
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
        raise ReadError(f"the event at byte {offset} is longer than {EVENT_LIMIT >> 20} MB; this is no profiler trace")
    for _ in source:
        pass  # the tail is already at its limit
    yield buffer, offset, True


def head(source: Iterator[bytes], trace: Trace) -> tuple[bytes, int]:
    """Read up to the event array; return the bytes read and the offset of the events."""
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
    """Return the text between the first two events as the separator; None if the first is malformed."""
    text = buffer[:BLOCK].decode("latin-1")  # one character per byte
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
    """Return (end of the last whole event but one, offset after the comma), or None if no event ends in the buffer.

    The first ``searched`` bytes are known to have no boundary.
    """
    if edge is not None:
        place = buffer.rfind(edge.text, searched)
        if place >= 0:
            return place + edge.closing, place + edge.comma
    last = None
    for last in BOUNDARY.finditer(buffer, searched):  # noqa: B007 - the last one is wanted
        pass
    return None if last is None else (last.start() + 1, last.end())
