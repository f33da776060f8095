"""Read a JSON document forward in bounded memory: decode what is wanted, and large arrays of objects in batches.

Values are found by matching braces. A large array is decoded in batches, each cut before an object whose first key is
that of the array's first object. If the cut was wrong, the batch does not decode, and its objects are split one by one.
Values of an unexpected type are left out of their object.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from typing import BinaryIO, ClassVar, TypeVar, cast

import msgspec

from tracedb.errors import ReadError
from tracedb.ingester.issues import Account
from tracedb_rocprof.json.coercion import Mender

CHUNK = 1 << 20
SPACE = b" \t\r\n"
TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*+"|[\[\]{}"]', re.DOTALL)
"""A string or bracket; a lone quote if the string ends beyond the buffer."""
CLOSING_OF = {b"{": b"}", b"[": b"]"}
SCALAR = re.compile(rb"[^\s,\]}]+")
FIRST_KEY = re.compile(rb'\{\s*("(?:[^"\\]|\\.)*+")\s*:')
LONGEST = 256 << 20
"""No trace has a longer value."""

T = TypeVar("T")


class Incomplete(Exception):
    """The rest of the document cannot be read; the message says why."""

    code: ClassVar[str]


class CutShort(Incomplete):
    """The document ends before it is complete."""

    code = "file_cut"

    def __init__(self) -> None:
        super().__init__("the file ends too early; all complete events were loaded")


class Damaged(Incomplete):
    """Brackets do not match, so later values cannot be found; the message names the place."""

    code = "file_damaged"


class JsonStream:
    """A forward-only reader of one JSON document."""

    def __init__(self, file: BinaryIO, account: Account) -> None:
        self._file = file
        self._account = account
        self._data = b""
        self._at = 0
        self._dropped = 0  # bytes of the document before ``_data``
        self.unreadable = 0
        """Array items skipped so far: not objects, or not JSON."""

    def _more(self) -> None:
        """Read more and drop consumed bytes. Raises ``CutShort`` at the end of the file."""
        kept = self._data[self._at :]
        if len(kept) > LONGEST:
            raise ReadError(f"one value of the JSON document is longer than {LONGEST:,} bytes; it is no trace")
        chunk = self._file.read(max(CHUNK, len(kept)))
        if not chunk:
            raise CutShort
        self._dropped += self._at
        self._data, self._at = kept + chunk, 0

    def _place(self, at: int) -> str:
        return f"at byte {self._dropped + at}"

    def peek(self) -> bytes:
        """Return the next character that is not white space."""
        while True:
            while self._at < len(self._data) and self._data[self._at] in SPACE:
                self._at += 1
            if self._at < len(self._data):
                return self._data[self._at : self._at + 1]
            self._more()

    def take(self, wanted: bytes) -> None:
        """Skip a character. Raises ``ReadError`` if another one is there."""
        found = self.peek()
        if found != wanted:
            raise ReadError(
                f"not valid JSON: {found.decode(errors='replace')} {self._place(self._at)}, "
                f"where {wanted.decode()} is expected"
            )
        self._at += 1

    def members(self) -> Iterator[str]:
        """Yield the keys of the object that begins here; each value must be read before the next key."""
        self.take(b"{")
        while self.peek() != b"}":
            if self.peek() != b'"':
                place = self._place(self._at)
                found = " ".join(self.value()[:40].decode(errors="replace").split())
                raise ReadError(f"not valid JSON: {found} {place}, where a key is expected")
            key = _text(self.value())
            self.take(b":")
            self.peek()
            yield key
            if self.peek() == b",":
                self._at += 1
        self.take(b"}")

    def items(self) -> Iterator[None]:
        """Step to each item of the array that begins here; each must be read before the next."""
        self.take(b"[")
        while self.peek() != b"]":
            yield None
            if self.peek() == b",":
                self._at += 1
        self.take(b"]")

    def value(self) -> bytes:
        """Return the text of the value that begins here, and skip it."""
        end = self._end()
        text = self._data[self._at : end]
        self._at = end
        return text

    def decoded(self, kind: type[T]) -> T:
        """Return the value that begins here, without its unreadable parts."""
        found = self._mended(self.value(), kind)
        if found is None:
            self._account.mended("header_unreadable", 1, f"{kind.__name__.lower()} is not an object; left out")
        return kind() if found is None else found

    def holds(self, opening: bytes, what: str) -> bool:
        """Whether a list or an object begins here; else skip the value, which is a fault unless it is null."""
        if self.peek() == opening:
            return True
        if self.value() != b"null":
            noun = "a list" if opening == b"[" else "an object"
            self._account.mended("header_unreadable", 1, f"{what} is not {noun}; left out")
        return False

    def skip(self) -> None:
        """Skip the value that begins here, in bounded memory if it is an array of objects."""
        if self.peek() == b"[":
            for _ in self.batches(msgspec.Raw):
                pass
        else:
            self._at = self._end()

    def _end(self) -> int:
        """Return the end of the value that begins here. Raises ``Damaged`` if its brackets do not match."""
        first = self.peek()
        if first not in b'{["':
            while (match := SCALAR.match(self._data, self._at)) is None or match.end() == len(self._data):
                self._more()
            return match.end()
        place, unclosed = self._at, list[bytes]()
        while True:
            for match in TOKEN.finditer(self._data, place):
                token = match[0]
                if token == b'"':
                    break
                place = match.end()
                if token in CLOSING_OF:
                    unclosed.append(token)
                elif token in CLOSING_OF.values() and token != (wanted := CLOSING_OF[unclosed.pop()]):
                    found = f"{token.decode()} {self._place(place - 1)}"
                    raise Damaged(f"not valid JSON: {found}, where {wanted.decode()} is expected")
                if not unclosed:
                    return place
            done = place - self._at
            self._more()
            place = self._at + done

    def batches(self, kind: type[T]) -> Iterator[list[T]]:
        """Yield batches of decoded items of the array that begins here, without those that are not objects."""
        self.take(b"[")
        separator: re.Pattern[bytes] | None = None
        while self.peek() != b"]":
            end = self._end()  # of the next item
            if separator is None:
                key = FIRST_KEY.match(self._data, self._at)
                separator = re.compile(rb"\}\s*,\s*(?=\{\s*" + re.escape(key[1]) + rb"\s*:)") if key else None
            yield self._batch(kind, separator, end)
            if self.peek() == b",":
                self._at += 1
        self.take(b"]")

    def _batch(self, kind: type[T], separator: re.Pattern[bytes] | None, end: int) -> list[T]:
        """Decode the items up to the last separator, or up to the item that ends at ``end``."""
        places = separator.finditer(self._data, self._at) if separator is not None else ()
        last = next(iter(deque(places, maxlen=1)), None)
        if last is not None and last.start() + 1 > end:
            text = self._data[self._at : last.start() + 1]
            try:
                found: list[T] = msgspec.json.decode(b"[" + text + b"]", type=list[kind])  # type: ignore[valid-type]
                self._at = last.start() + 1
                return found
            except (msgspec.DecodeError, UnicodeDecodeError):
                pass
        item = self._mended(self._data[self._at : end], kind)
        if item is None:
            self.unreadable += 1
            # An extra or missing quote makes an item seem to go on; the next one begins after the next separator.
            following = separator.search(self._data, self._at, end) if separator is not None else None
            self._at = end if following is None else following.start() + 1
            return []
        self._at = end
        return [item]

    def _mended(self, text: bytes, kind: type[T]) -> T | None:
        """Return a value; None if it is not JSON, or of another kind as a whole."""
        try:
            return msgspec.json.decode(text, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            if kind is msgspec.Raw:  # its content does not matter
                return cast(T, msgspec.Raw(text))
        try:
            found = msgspec.json.decode(text.decode(errors="replace"))
        except (msgspec.DecodeError, RecursionError):
            return None
        if not isinstance(found, dict):
            return None
        mender = Mender()
        made: T = mender.record(found, kind)
        for name in mender.faults:
            self._account.mended("field_unreadable", 1, f"{name} has an unexpected type; left empty")
        return made


def _text(value: bytes) -> str:
    try:
        return str(msgspec.json.decode(value))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ReadError(f"not valid JSON: the key {value[:40].decode(errors='replace')!r}") from error
