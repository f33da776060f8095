"""Read a block that does not parse as a whole: event by event, repairing where possible."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import msgspec

from tracedb.errors import ReadError
from tracedb.ingester.issues import Account
from tracedb_torch.decode.event_types import NOT_SOUND, Decoders
from tracedb_torch.recover.coercion import coerced, time_of
from tracedb_torch.recover.event_bounds import PHASE, PHASE_START, boundary, is_event, next_start
from tracedb_torch.recover.repair import mend
from tracedb_torch.split.blocks import Trace

HEADER_KEY = re.compile(rb'(?<!\\)"(traceEvents|schemaVersion|deviceProperties|distributedInfo)"\s*:')
ARRAY_END = re.compile(rb'\}\s*\]\s*(?:,\s*"[\w .]+"\s*:|\}?\s*$)')
BETWEEN = re.compile(rb"[\s,]*")
MANY_BAD = 50  # this many unreadable events, and …
BAD_SHARE = 0.25  # … this share of all events: the file is not a single trace
CARRY_LIMIT = 16 << 20  # bytes that an event may span across blocks before it counts as malformed
SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")

NO_VALUE = (ValueError, RecursionError, ArithmeticError)  # raised by json.loads, also for an enormous number

_raw = json.JSONDecoder(strict=False)
_encoder = msgspec.json.Encoder(decimal_format="number")


class Salvage:
    """Reads single events out of damaged blocks of one file."""

    def __init__(self, trace: Trace, account: Account, decoders: Callable[[], Decoders]) -> None:
        self._trace = trace
        self._account = account
        self._decoders = decoders
        self._bad = 0
        self._seen = 0

    def block(self, text: bytes, offset: int, last: bool) -> tuple[list[Any], int]:
        """Return the events of a block, and the offset of an event that continues in the next block.

        None stands for a lost event, so that the numbering stays right. Sets ``trace.ended`` if the array ends in this
        block. Raises ``ReadError`` for bytes of two traces in one file.
        """
        events: list[Any] = []
        place = 0
        latin = text.decode("latin-1")  # one character per byte, so offsets agree
        while (place := _skip(text, place)) < len(text):
            if text[place : place + 1] == b"]":
                self._trace.ended = True
                self._trace.add_tail(text[place + 1 :] + (b"" if last else b","))
                break
            self._seen = self._account.events_read + len(events)
            found = boundary(text, place)
            end = found.start() + 1 if found else len(text)
            event = self._sound(text[place:end], offset + place)
            if event is None:
                try:
                    _, end = _raw.raw_decode(latin, place)
                except (ValueError, RecursionError) as error:
                    is_followed = found is not None and is_event(latin, found.end())
                    if not last and len(text) - place < CARRY_LIMIT and _goes_on(error, is_followed):
                        return events, place
                    if _is_cut(error) and not is_followed:
                        self._check_header(text, place, end, offset)
                        if last and not ARRAY_END.search(text, place):
                            self._cut(offset + place)
                            events.append(None)
                            break
                    made, place = self._malformed(text, latin, place, end, offset, last)
                    events += made
                    continue
                where = offset + place
                event = self._sound(text[place:end], where) or self._odd(text[place:end], where)
            events.append(event)
            place = end
        return events, len(text)

    def _sound(self, text: bytes, offset: int) -> Any:
        try:
            event = self._decoders().event(text)
        except NOT_SOUND:
            return None
        if event.ph is None:
            self._check_header(text, 0, len(text), offset)
        return event

    def _odd(self, text: bytes, offset: int) -> Any:
        """Decode valid JSON with values of an unexpected type, or with characters that are not allowed."""
        self._check_header(text, 0, len(text), offset)
        source = text.decode("utf-8", errors="replace")
        try:
            value = json.loads(source, strict=False, parse_float=Decimal)
        except NO_VALUE:  # a number of thousands of digits
            value = None
        if _is_foreign(text, source):
            return self._coerced(value, offset, "event_repaired", "invalid characters were replaced")
        if isinstance(value, dict) and (event := self._with_times(value, offset)) is not None:
            return event
        return self._coerced(value, offset, "event_coerced", "values of an unexpected type were converted")

    def _with_times(self, value: dict[str, Any], offset: int) -> Any:
        """Decode an event in which only a time has an unexpected type; decimals or floats both do here."""
        return self._encoded({**value, **{key: time_of(value[key]) for key in ("ts", "dur") if key in value}}, offset)

    def _encoded(self, fields: dict[str, Any], offset: int) -> Any:
        try:
            return self._sound(_encoder.encode(fields), offset)
        except (
            OverflowError,
            RecursionError,
            ValueError,
        ):  # an integer of more than 64 bits, or a lone surrogate
            return None

    def _cut(self, offset: int) -> None:
        self._account.is_cut = True
        self._account.lost("event_cut", 1, f"the file ends inside an event at byte {offset}")

    def _malformed(
        self, text: bytes, latin: str, place: int, end: int, offset: int, last: bool
    ) -> tuple[list[Any], int]:
        """Return the event recovered from a malformed piece, and where to resume; several events may be lost."""
        found = ARRAY_END.search(text, place, end)
        if found and (found[0].endswith(b":") or (last and end == len(text))):
            end = found.start() + 1
        self._check_header(text, place, end, offset)
        if second := PHASE_START.search(text, place + 1, end):
            end = second.start()
        phases = len(PHASE.findall(text, place, end))
        value = mend(text[place:end]) if phases <= 1 else None  # mending would merge several events into one
        if value is not None:
            return [self._coerced(value, offset + place, "event_repaired", "malformed JSON was repaired")], end
        following = next_start(text, latin, place, end)
        lost = max(len(PHASE.findall(text, place, following)), 1)
        for _ in range(lost):
            self._lose(offset + place)
        return [None] * lost, following

    def _check_header(self, text: bytes, place: int, end: int, offset: int) -> None:
        """Raise ``ReadError`` if a trace header is among the events; ``text`` begins at ``offset``."""
        if key := HEADER_KEY.search(text, place, end):
            raise ReadError(
                f"a second trace header ({key[1].decode()}) is among the events at byte {offset + key.start()}: "
                "several processes wrote to this file at once; let each rank export to its own path"
            )

    def _coerced(self, value: Any, offset: int, code: str, what: str) -> Any:
        try:
            fields, lost = coerced(value) if isinstance(value, dict) else (None, [])
        except RecursionError:
            fields, lost = None, []
        event = self._encoded(fields, offset) if fields is not None else None
        if event is None:
            self._lose(offset)
            return None
        self._account.mended(code, 1, what, place=f"byte {offset}")
        for name in lost:
            self._account.unreadable(name)
        return event

    def _lose(self, offset: int) -> None:
        self._bad += 1
        self._account.lost("event_unreadable", 1, "not readable as an event", place=f"byte {offset}")
        if self._bad >= MANY_BAD and self._bad > BAD_SHARE * self._seen:
            raise ReadError(
                f"{self._bad} of the first {self._seen} events are unreadable (the last at byte {offset}): the file is "
                "damaged, or several processes wrote to it at once; export it again"
            )


def _skip(text: bytes, place: int) -> int:
    found = BETWEEN.match(text, place)
    return found.end() if found else place


def _is_cut(error: Exception) -> bool:
    """Whether the text is well-formed up to its end, as far as the error shows."""
    if not isinstance(error, json.JSONDecodeError):
        return False  # a number of thousands of digits, or thousands of brackets
    return _is_in_text(error) or error.pos >= len(error.doc.rstrip()) - len("\\u0000")


def _goes_on(error: Exception, is_followed: bool) -> bool:
    """Whether an event may end in the next block. Apparent events after it may be objects among its arguments.

    After a missing quote they are inside a text that never ends.
    """
    return _is_cut(error) and not (is_followed and isinstance(error, json.JSONDecodeError) and _is_in_text(error))


def _is_in_text(error: json.JSONDecodeError) -> bool:
    return error.msg.startswith("Unterminated string")


def _is_foreign(text: bytes, source: str) -> bool:
    """Whether the text holds raw control characters, bytes that are not UTF-8, or halves of surrogate pairs."""
    try:
        json.loads(source)
    except (ValueError, RecursionError):
        return True
    return source.encode() != text or SURROGATE.search(text) is not None
