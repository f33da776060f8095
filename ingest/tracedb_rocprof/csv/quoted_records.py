"""Read records of a CSV file whose quoting cannot be trusted.

rocprofv3 quotes texts without escaping quotes inside them. So a record is first read strictly; if that fails, the
columns before and after the free text are matched, since their number is fixed, and what lies between is the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tracedb_rocprof.csv.headers import ALLOCATION, Header

SIMPLE = rb'(?:"[^"\r\n]*"|[^",\r\n]*)'
QUOTED = rb'(?:"[^"]*+"|[^",\r\n]*)'
NUMBER = rb'(?:"[-+.\dA-Fa-fx \t]*"|[-+.\dA-Fa-fx \t]*)'
LONE_QUOTE = rb'(?:"[^"\r\n]*"|[^",\r\n]*|")'
"""As SIMPLE, or a lone quote: rocprofv3 writes one as the agent of FREE rows in memory_allocation_trace."""
END = rb"\r?(?:\n|\Z)"
TIMES = frozenset(("start_timestamp", "end_timestamp"))
LONGEST_LINES = 1_000
"""A record has at most this many lines."""


@dataclass
class Records:
    """The result for a block: a list of values per used column, and the lines that are not records."""

    columns: list[list[bytes]]
    unreadable: list[bytes] = field(default_factory=list)


class Reader:
    """Reads the records of one file."""

    def __init__(self, header: Header) -> None:
        at = header.text_at
        head = b"".join(b"(%s,)" % _pattern(header, name) for name in header.columns[:at])
        tail = b"".join(b"(,%s)" % _pattern(header, name) for name in header.columns[at + 1 :]) + END
        strict = [head.replace(SIMPLE, QUOTED), tail.replace(SIMPLE, QUOTED)]  # a quoted field may contain line breaks
        self._strict = re.compile(strict[0] + rb'("(?:[^"]++|"")*+"|[^",\r\n]*)' + strict[1])
        self._anchored = re.compile(head + b"(.*)" + tail, re.DOTALL)
        self._lenient = _lenient(header)
        wanted = header.used
        self._places = [header.columns.index(name) for name in wanted]
        self._text_at = at

    def is_whole(self, line: bytes) -> bool:
        """Whether a line, including its line break, is a complete record."""
        return self._anchored.fullmatch(line) is not None or (
            self._lenient is not None and self._lenient.fullmatch(line) is not None
        )

    def read(self, block: bytes) -> Records:
        """Return the records of a block, which begins and ends with one."""
        found = Records([[] for _ in self._places])
        position = 0
        while position < len(block):
            if block[position : position + 2].startswith((b"\n", b"\r\n")):
                position = block.index(b"\n", position) + 1
                continue
            match = self._strict.match(block, position)
            if match is not None and match.end() > position:
                self._take(match.groups(), found)
                position = match.end()
                continue
            position = self._anchor(block, position, found)
        return found

    def _anchor(self, block: bytes, position: int, found: Records) -> int:
        """Read the record at a position, which may span several lines; returns where the next one begins."""
        end = position
        match = self._lenient.match(block, position) if self._lenient else None
        if match is not None:
            self._take(match.groups(), found)
            return match.end()
        for number, line in enumerate(_lines(block, position)):
            if number and (number > LONGEST_LINES or self.is_whole(line)):
                break
            end += len(line)
            match = self._anchored.fullmatch(block, position, end)
            if match is not None and _is_one_text(match.group(self._text_at + 1)):
                self._take(match.groups(), found)
                return end
        first = position + len(next(_lines(block, position)))
        found.unreadable.append(block[position:first])
        return first

    def _take(self, groups: Sequence[bytes], found: Records) -> None:
        for values, place in zip(found.columns, self._places, strict=True):
            value = groups[place]
            if place < self._text_at:
                value = value[:-1]
            elif place > self._text_at:
                value = value[1:]
            values.append(value)


def _is_one_text(value: bytes) -> bool:
    """Whether the free-text position holds a single field; if it holds several, it has a quote at one end only.

    A text that spans lines and contains quotes is taken for several records with too many or too few fields.
    """
    is_quoted = value.startswith(b'"') == value.endswith(b'"')
    return len(value) < 2 or (is_quoted and not (b"\n" in value and b'"' in value[1:-1]))


def _lenient(header: Header) -> re.Pattern[bytes] | None:
    """Return the pattern for a line with the right number of fields of which only the times must be numbers.

    None if the header has no times.
    """
    if not TIMES.issubset(header.columns):
        return None
    at = header.text_at
    fields = [_pattern(header, name) if name in TIMES else SIMPLE for name in header.columns]
    head = b"".join(b"(%s,)" % field for field in fields[:at])
    tail = b"".join(b"(,%s)" % field for field in fields[at + 1 :]) + END
    return re.compile(head + rb'("(?:[^"\r\n]++|"")*+"|[^",\r\n]*)' + tail)


def _pattern(header: Header, column: str) -> bytes:
    """Return the pattern for any column but the free text."""
    if header.domain == ALLOCATION:
        return LONE_QUOTE
    return NUMBER if column in header.used and not header.is_text(column) else SIMPLE


def _lines(block: bytes, position: int) -> Iterator[bytes]:
    while position < len(block):
        end = block.find(b"\n", position) + 1 or len(block)
        yield block[position:end]
        position = end


def unquoted(value: bytes) -> bytes:
    """Return a value without its enclosing quotes; inner quotes are unchanged."""
    if len(value) > 1 and value.startswith(b'"') and value.endswith(b'"'):
        return value[1:-1]
    return value
