"""The JSON form of ``torch.cuda.memory._snapshot()``: its segments, blocks and events.

Only the document as a whole is decoded at first; segments, blocks and events are decoded one by one, so that an odd
value costs one of them. Stacks stay text until they are needed, because most of them occur many times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Raw

from tracedb.errors import ReadError
from tracedb.ingester.decompress import opened
from tracedb.ingester.issues import Account

MOST_BYTES = 1 << 30
"""Size of a document that is read: it is held in memory as a whole."""
NOTHING = Raw(b"")


class Frame(msgspec.Struct, gc=False):
    """A function of a stack."""

    name: str | None = None
    filename: str | None = None
    line: int | None = None


class Event(msgspec.Struct, gc=False):
    """An action of the allocator. ``size`` of an allocation is what was asked for, before rounding."""

    action: str
    addr: int | None = None
    size: int | None = None
    time_us: int | float | None = None
    frames: Raw = NOTHING
    device_free: int | None = None


class History(msgspec.Struct, gc=False):
    """What a block was last used for, as releases before 2.1 record it."""

    real_size: int | None = None
    frames: Raw = NOTHING


class Block(msgspec.Struct, gc=False):
    """A part of a segment."""

    state: str
    size: int
    address: int | None = None
    requested_size: int | None = None
    frames: Raw = NOTHING
    history: list[History] = []


class Segment(msgspec.Struct, gc=False):
    """Memory that the allocator holds from the driver."""

    total_size: int
    address: int = 0
    device: int = 0
    blocks: list[Raw] = []


class Document(msgspec.Struct, gc=False):
    """A snapshot: the segments at its time, and by device the events before it."""

    segments: list[Raw] = []
    device_traces: list[list[Raw]] = []


Part = TypeVar("Part", Event, Segment, Block)
_EVENT = msgspec.json.Decoder(Event)
_SEGMENT = msgspec.json.Decoder(Segment)
_BLOCK = msgspec.json.Decoder(Block)
_FRAMES = msgspec.json.Decoder(list[Frame])


def read(path: Path, progress: Callable[[int], None]) -> Document:
    """Read a snapshot. Raises ``ReadError`` if it is too large, or not valid."""
    faults: list[str] = []
    with opened(path, progress, faults) as file:
        text = file.read(MOST_BYTES + 1)
    if len(text) > MOST_BYTES:
        raise ReadError(
            f"a memory snapshot of more than {MOST_BYTES >> 30} GiB of JSON, which is not read; record fewer events "
            "(torch.cuda.memory._record_memory_history(max_entries=N))"
        )
    if faults:
        raise ReadError(f"a memory snapshot whose compressed data is damaged ({faults[0]}); copy it again")
    try:
        if text.lstrip().startswith(b"["):
            return Document(segments=msgspec.json.decode(text, type=list[Raw]))
        return msgspec.json.decode(text, type=Document)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise ReadError(f"a memory snapshot that is not valid JSON ({error}); write it again with json.dump") from error


def segments(texts: list[Raw], account: Account) -> Iterator[Segment]:
    """Yield the valid segments."""
    return _each(_SEGMENT, texts, "segment", account)


def events(texts: list[Raw], account: Account) -> Iterator[Event]:
    """Yield the valid events of a device."""
    return _each(_EVENT, texts, "event", account)


def allocated_blocks(segment: Segment, account: Account) -> Iterator[tuple[int, int, Raw]]:
    """Yield address, bytes asked for and stack of each block in use."""
    place = segment.address
    for block in _each(_BLOCK, segment.blocks, "block", account):
        address, place = place if block.address is None else block.address, place + block.size
        if block.state != "active_allocated":
            continue
        last = block.history[0] if block.history else History()
        size = block.requested_size if block.requested_size is not None else last.real_size
        yield address, block.size if size is None else size, block.frames if bytes(block.frames) else last.frames


def stack(text: Raw) -> list[Frame]:
    """Return the functions of a stack, the innermost first; an unreadable one is empty."""
    try:
        return _FRAMES.decode(text) if bytes(text) else []
    except (msgspec.DecodeError, UnicodeDecodeError):
        return []


def _each(decoder: msgspec.json.Decoder[Part], texts: list[Raw], what: str, account: Account) -> Iterator[Part]:
    for number, text in enumerate(texts):
        try:
            yield decoder.decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            account.lost("event_unreadable", 1, f"{what}s with impossible values ({error})", what, f"number {number}")
