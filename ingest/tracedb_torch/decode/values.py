"""Columns from events: exact times, numbers, and texts as numbers into a dictionary."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from msgspec import Raw

from tracedb_torch.int_columns import values_of
from tracedb_torch.recover.repair import clean

EXACT_BELOW = float(1 << 43)  # microseconds that fit a double to the nanosecond with room for rounding
LATEST = 9.0e15  # microseconds; larger ones overflow 64 bits as nanoseconds
LARGEST = (1 << 63) - 1
NO_TEXT = -1
NO_NUMBER = 1 << 64  # out of the bounds of every column
TEXTS_LIMIT = 48 << 20  # bytes of text remembered before the dictionary is restarted

Times = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class NeedsExactTimes(Exception):
    """A time does not fit a double to the nanosecond; the caller must read it from the text."""


def nanoseconds(values: Sequence[Any], trust_large: bool, exact: bool = False) -> tuple[Times, Mask, bool]:
    """Return (ns as int64, mask of usable values, whether any has a fraction) for values in microseconds.

    Values may be float, decimal text, Decimal or None. The integer part is scaled by 1000 as an integer, since
    ``rint(ts * 1000)`` is wrong for a quarter of the values above 2^42. Raises ``NeedsExactTimes`` for floats from
    2^43 on unless ``trust_large``. With ``exact`` the values are decimals, which must not pass through floats.
    """
    if exact:
        return _nanoseconds_one_by_one(values, True)
    try:
        micros = np.frombuffer(struct.pack(f"{len(values)}d", *values), dtype=np.float64)
    except struct.error:
        return _nanoseconds_one_by_one(values, trust_large)
    usable = np.isfinite(micros) & (np.abs(micros) < LATEST)
    if not usable.all():
        micros = np.where(usable, micros, 0.0)
    if not trust_large and len(micros) and np.abs(micros).max() >= EXACT_BELOW:
        raise NeedsExactTimes
    whole = np.floor(micros)
    fraction = micros - whole
    times = whole.astype(np.int64) * 1000 + np.rint(fraction * 1000).astype(np.int64)
    return times, usable, bool(fraction.any())


def _nanoseconds_one_by_one(values: Sequence[Any], trust_large: bool) -> tuple[Times, Mask, bool]:
    times = np.zeros(len(values), np.int64)
    usable = np.zeros(len(values), np.bool_)
    fractional = False
    for place, value in enumerate(values):
        if value is None:
            continue
        if not trust_large and isinstance(value, float) and EXACT_BELOW <= abs(value) < LATEST:
            raise NeedsExactTimes
        try:
            micros = value if isinstance(value, Decimal) else Decimal(str(value).strip())
        except ArithmeticError:
            continue
        if not micros.is_finite() or not -LATEST <= micros <= LATEST:
            continue
        nanos = (micros * 1000).to_integral_value(ROUND_HALF_EVEN)
        times[place] = int(nanos)
        usable[place] = True
        fractional = fractional or micros != micros.to_integral_value()
    return times, usable, fractional


def integers(values: Sequence[int | None]) -> pa.Array:
    """Return int64 values; NULL for those that do not fit."""
    try:
        return _int64(values)
    except struct.error:
        pass
    if values.count(None) == len(values):
        return pa.nulls(len(values), pa.int64())
    try:
        return pa.array(values, pa.int64())
    except (OverflowError, pa.ArrowInvalid):
        fitting = [value if value is not None and -(1 << 63) <= value < 1 << 63 else None for value in values]
        return pa.array(fitting, pa.int64())


def bounded(
    values: Sequence[int | None], least: int = 0, most: int = LARGEST, instead: int | None = None
) -> tuple[pa.Array, int]:
    """Return int64 values and how many were out of bounds; these are replaced by ``instead``."""
    found = integers(values)
    is_whole = not found.null_count or found.null_count == values.count(None)
    if is_whole and (found.null_count == len(found) or _is_within(values_of(found), least, most)):
        return found, 0
    kept = [value if value is None or least <= value <= most else instead for value in values]
    return integers(kept), sum(value is not None and not least <= value <= most for value in values)


def _is_within(values: npt.NDArray[np.signedinteger], least: int, most: int) -> bool:
    """Whether all values are within the bounds, including the zeros at NULLs."""
    return bool(values.min() >= least and values.max() <= most)


def ids(values: Sequence[int | None]) -> pa.Array:
    """Return ids for joins. Unsigned 64-bit ids keep their bits, so that equal ones stay equal."""
    try:
        return _int64(values)
    except struct.error:
        return integers([value if value is None or value < 1 << 63 else value - (1 << 64) for value in values])


def numbers(values: Sequence[int | str | None]) -> tuple[pa.Array, int]:
    """Return process, thread or stream numbers (see ``number``), and how many have too many bits."""
    try:
        return _int64(values), 0
    except struct.error:
        return bounded([number(value) for value in values], -LARGEST - 1)


def _int64(values: Sequence[Any]) -> pa.Array:
    """Pack integers with ``struct``, the fastest way from a list. Raises struct.error for anything else."""
    packed = pa.py_buffer(struct.pack(f"{len(values)}q", *values))
    return pa.Array.from_buffers(pa.int64(), len(values), [None, packed])


def number(value: int | str | None) -> int | None:
    """Return a process, thread or stream number; for a text such as ``stream 7``, its last number."""
    if value is None or type(value) is int:
        return value
    digits = str(value).strip().rpartition(" ")[2]
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 20 else None


def process_number(value: int | str | None) -> int:
    """Return a number for a process: the value itself if it is one, else a negative hash of its text."""
    found = number(value)
    if found is not None and 0 <= found < 1 << 63:
        return found
    return -2 - zlib.crc32(str(value).encode("utf-8", errors="replace"))


def text_of(raw: Raw) -> str | None:
    """Return a raw JSON value as plain text: a string's content, anything else as JSON; None for null or nothing."""
    source = bytes(raw)
    if not source or source == b"null":
        return None
    if not source.startswith(b'"'):
        return clean(one_spelling(source))
    try:
        return clean(json.loads(source))
    except ValueError:  # not UTF-8
        return clean(json.loads(source.decode("utf-8", errors="replace"), strict=False))


def number_of(raw: Raw) -> int | None:
    """Return a raw JSON value as an integer, also in quotes; ``NO_NUMBER`` if it is not one."""
    text = text_of(raw)
    if text is None:
        return None
    try:
        return int(text)
    except ValueError:
        return NO_NUMBER


class Texts:
    """Numbers texts, so that staged rows are narrow. ``new`` holds the pairs not yet written to the dictionary."""

    def __init__(self) -> None:
        self._numbers: dict[str | bytes, int] = {}
        self._bytes = 0
        self._next = 0
        self.new: list[tuple[int, str]] = []
        self.cleaned = 0
        """Texts not yet counted in an account that lost characters or got others in their place."""

    def numbers(self, values: Sequence[str]) -> pa.Array:
        """Return the number of each text."""
        known = self._numbers
        try:
            return _int64([known[value] for value in values])
        except KeyError:
            return _int64([self._number(value, value) for value in values])

    def numbers_of_raw(self, values: Sequence[Raw]) -> pa.Array:
        """Return the number of each raw JSON value as text, normalised to one spelling regardless of white space.

        NULL for null and for absent values.
        """
        sources = b"\0".join(values).split(b"\0")  # JSON holds no NUL; faster than one bytes() each
        codes = [*map(self._numbers.get, sources)]
        if None in codes:
            for place, source in enumerate(sources):
                if codes[place] is None:
                    codes[place] = self._number_of_source(source)
        if NO_TEXT in codes:
            return pa.array([None if code == NO_TEXT else code for code in codes], pa.int64())
        return _int64(codes)

    def numbers_of_strings(self, values: Sequence[Raw]) -> pa.Array:
        """Return the number of each raw JSON string's text; NULL for any other value and for absent ones."""
        if not any(values):
            return pa.nulls(len(values), pa.int64())
        texts = [json.loads(source) if source[:1] == b'"' else None for source in map(bytes, values)]
        return pa.array([None if text is None else self._number(text, text) for text in texts], pa.int64())

    def _number_of_source(self, source: bytes) -> int:
        if not source or source == b"null":
            self._numbers[source] = NO_TEXT
            return NO_TEXT
        code = self._numbers.get(source)
        return self._number(source, one_spelling(source)) if code is None else code

    def _number(self, key: str | bytes, text: str) -> int:
        code = self._numbers.get(key)
        if code is None:
            if self._bytes > TEXTS_LIMIT:
                self._numbers.clear()
                self._bytes = 0
            code = self._next
            self._next += 1
            self._numbers[key] = code
            self._bytes += len(key) + 100
            made = clean(text)
            self.cleaned += made != text
            self.new.append((code, made))
        return code


def one_spelling(source: bytes) -> str:
    """Return a raw JSON value as text, formatted as by ``json.dumps``."""
    try:
        return json.dumps(json.loads(source), ensure_ascii=False)
    except (ValueError, RecursionError):  # numbers of thousands of digits or a thousand nested brackets stay as is
        return source.decode("utf-8", errors="replace")
