"""Reading a block that does not parse as a whole: event by event, mending what can be mended."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import msgspec

from tracedb.errors import ReadError
from tracedb_torch.account import Account
from tracedb_torch.blocks import BOUNDARY, Trace
from tracedb_torch.events import Decoders
from tracedb_torch.repair import clean, mend

HEADER_KEY = re.compile(rb'(?<!\\)"(traceEvents|schemaVersion|deviceProperties|distributedInfo)"\s*:')
ARRAY_END = re.compile(rb'\}\s*\]\s*(?:,\s*"[\w .]+"\s*:|\}?\s*$)')
SPACE = b" \t\r\n,"
MANY_BAD = 50  # unreadable events, and …
BAD_SHARE = 0.25  # … share of all events, from which on the file is not one trace
INT_LIMIT = 1 << 63

_raw = json.JSONDecoder(strict=False)


class Salvage:
    """Reads single events out of damaged blocks of one file."""

    def __init__(self, trace: Trace, account: Account, decoders: Callable[[], Decoders]) -> None:
        self._trace = trace
        self._account = account
        self._decoders = decoders
        self._bad = 0

    def block(self, text: bytes, offset: int, last: bool) -> list[Any]:
        """Return the events of a block; None stands for an event that is lost, so that the numbering holds.

        Sets ``trace.ended`` where the array ends within. Raises ``ReadError`` for bytes of two traces in one file.
        """
        events: list[Any] = []
        place = 0
        latin = text.decode("latin-1")  # one character a byte: places in one are places in the other
        while (place := _skip(text, place)) < len(text):
            if text[place : place + 1] == b"]":
                self._trace.ended = True
                self._trace.add_tail(text[place + 1 :])
                break
            boundary = BOUNDARY.search(text, place)
            end = boundary.start() + 1 if boundary else len(text)
            event = self._sound(text[place:end])
            if event is None:
                try:
                    _, end = _raw.raw_decode(latin, place)
                    event = self._sound(text[place:end]) or self._odd(text[place:end], offset + place)
                except (ValueError, RecursionError):
                    event, end = self._malformed(text, place, end, offset, last and boundary is None)
            events.append(event)
            place = end
        return events

    def _sound(self, text: bytes) -> Any:
        try:
            return self._decoders().event(text)
        except msgspec.DecodeError:
            return None

    def _odd(self, text: bytes, offset: int) -> Any:
        """Well-formed JSON with values of another type than expected."""
        value = json.loads(text.decode("utf-8", errors="replace"), strict=False, parse_float=Decimal)
        return self._coerced(value, offset, "event_coerced", "values of an unexpected type were converted")

    def _malformed(self, text: bytes, place: int, end: int, offset: int, is_end: bool) -> tuple[Any, int]:
        found = ARRAY_END.search(text, place, end)
        if found:
            end = found.start() + 1
        elif is_end:
            self._account.is_cut = True
            self._account.lost("event_cut", 1, f"the file ends inside an event at byte {offset + place}")
            return None, end
        piece = text[place:end]
        if key := HEADER_KEY.search(piece):
            raise ReadError(
                f"a second trace header ({key[1].decode()}) stands among the events at byte {offset + place + key.start()}: "
                "several processes wrote into this file at once; let each rank export to its own path"
            )
        value = mend(piece)
        if value is None:
            self._lose(offset + place)
            return None, end
        return self._coerced(value, offset + place, "event_repaired", "malformed JSON was mended"), end

    def _coerced(self, value: Any, offset: int, code: str, what: str) -> Any:
        fields, lost = _coerce(value) if isinstance(value, dict) else (None, [])
        event = self._sound(msgspec.json.encode(fields)) if fields is not None else None
        if event is None:
            self._lose(offset)
            return None
        self._account.mended(code, 1, f"{what}, first at byte {offset}")
        if lost:
            self._account.mended("field_unreadable", 1, f"{', '.join(lost)}, first at byte {offset}")
        return event

    def _lose(self, offset: int) -> None:
        self._bad += 1
        self._account.lost("event_unreadable", 1, f"not readable as an event, first at byte {offset}")
        if self._bad >= MANY_BAD and self._bad > BAD_SHARE * self._account.events_read:
            raise ReadError(
                f"{self._bad} of the first {self._account.events_read} events are unreadable (the last at byte "
                f"{offset}): the file is damaged, or several processes wrote into it at once; export it again"
            )


def _skip(text: bytes, place: int) -> int:
    while place < len(text) and text[place] in SPACE:
        place += 1
    return place


TEXT_FIELDS = frozenset(
    ("Input Dims", "Input dims", "Input type", "Input Strides", "Concrete Inputs", "Collective name", "In msg nelems")
    + ("Out msg nelems", "Group size", "dtype", "Process Group Name", "Process Group Ranks", "Seq")
)
SIZE_FIELDS = frozenset(("grid", "block"))
INT_FIELDS = frozenset(
    ("External id", "external id", "device", "context", "stream", "correlation", "registers per thread")
    + ("shared memory", "bytes", "graph id", "graph node id", "Sequence number", "Fwd thread id", "Total Reserved")
    + ("Total Allocated", "Bytes", "Device Id", "Device Type", "Addr")
)


def _coerce(value: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the event with each known field in its expected type, and the names of fields that could not be had."""
    lost: list[str] = []
    event: dict[str, Any] = {}
    for key in ("ph", "cat", "name"):
        if value.get(key) is not None:
            event[key] = clean(value[key] if isinstance(value[key], str) else json.dumps(value[key]))
    for key in ("pid", "tid"):
        if isinstance(value.get(key), int | str):
            event[key] = value[key] if isinstance(value[key], int) else clean(value[key])
    for key in ("ts", "dur"):
        if (number := _decimal(value.get(key))) is not None:
            event[key] = number
        elif value.get(key) is not None:
            lost.append(key)
    args = value.get("args")
    if isinstance(args, dict):
        event["args"] = _coerce_args(args, lost)
    return event, lost


def _coerce_args(args: dict[str, Any], lost: list[str]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, value in args.items():
        if value is None:
            continue
        if key in INT_FIELDS:
            found = _integer(value)
        elif key in SIZE_FIELDS:
            found = _size(value)
        elif key == "est. achieved occupancy %":
            found = float(value) if isinstance(value, int | float | Decimal) and math.isfinite(value) else None
        elif key in TEXT_FIELDS:
            found = value
        else:
            continue
        if found is None:
            lost.append(key)
        else:
            out[key] = found
    return out


def _integer(value: Any) -> int | None:
    if isinstance(value, str) and re.fullmatch(r"-?\d{1,19}", value.strip()):
        value = int(value)
    if isinstance(value, float | Decimal) and math.isfinite(value) and value == int(value):
        value = int(value)
    return value if isinstance(value, int) and -INT_LIMIT <= value < INT_LIMIT else None


def _size(value: Any) -> list[int] | str | None:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and 1 <= len(value) <= 3:
        sizes = [_integer(item) for item in value] + [1, 1]
        if all(size is not None for size in sizes):
            return [size for size in sizes[:3] if size is not None]
    return None


def _decimal(value: Any) -> str | None:
    """Return a time as decimal text, exact whatever its size."""
    if isinstance(value, bool) or value is None:
        return None
    try:
        number = Decimal(str(value).strip())
    except ArithmeticError:
        return None
    return str(number) if number.is_finite() else None
