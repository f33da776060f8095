"""Mending one malformed event. What cannot be mended is given up, alone.

Each step answers a fault that profilers really wrote: Windows paths with bare backslashes, quotes inside names,
control characters, values without quotes or with doubled ones, trailing commas.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import Any

CONTROL = re.compile(r"[\x00-\x1f\x7f]")
BAD_ESCAPE = re.compile(r'\\(?!["\\/bfnrtu])|\\u(?![0-9a-fA-F]{4})')
LONE_BACKSLASH = re.compile(r'\\(?!")')
BARE_WORD = re.compile(r'(:\s*)([A-Za-z_][\w .:+-]*?)(?=\s*[,}\]])')
DOUBLED_QUOTES = re.compile(r'""([^"\n]+?)""')
TRAILING_COMMA = re.compile(r",(\s*[}\]])")
LITERALS = {"true", "false", "null", "NaN", "Infinity"}
TOP_KEYS = frozenset(
    ("ph", "cat", "name", "pid", "tid", "ts", "dur", "args", "id", "bp", "s", "cname", "sf", "tts", "bind_id", "scope")
)
_NEXT_TOP_KEY = r'\s*,\s*"(?:' + "|".join(sorted(TOP_KEYS)) + r')"\s*:'
NAME = re.compile(r'("name"\s*:\s*")(.*?)("(?=' + _NEXT_TOP_KEY + r"|\s*\}\s*$))", re.DOTALL)
_ANY_KEY = r'"[A-Za-z_][\w .%()/-]*"\s*:'
TEXT_VALUE = re.compile(
    r"(" + _ANY_KEY + r'\s*")(.*?)("(?=\s*,\s*' + _ANY_KEY + r"|\s*[}\]]\s*(?:[,}\]]|$)))", re.DOTALL
)
BARE_QUOTE = re.compile(r'(?<!\\)"')
LONGEST = 1 << 20  # an event longer than this is not worth the search


def mend(text: bytes) -> dict[str, Any] | None:
    """Return the event that ``text`` was meant to be, or None."""
    if len(text) > LONGEST:
        return None
    source = text.decode("utf-8", errors="replace")
    for attempt in (_as_is, _backslashes, _values, _backslashes_and_values):
        found = _load(attempt(source))
        if found is not None:
            return found
    for attempt in (_quotes, _quotes_and_values):
        found = _load(attempt(source))
        # A quote escaped at the wrong place leaves keys at the top that no event has.
        if found is not None and found.keys() <= TOP_KEYS:
            return found
    return None


def clean(name: str) -> str:
    """Return ``name`` without control characters and lone surrogates."""
    return CONTROL.sub("", name).encode("utf-8", errors="replace").decode("utf-8")


def _load(source: str) -> dict[str, Any] | None:
    try:
        value = json.loads(source, strict=False, parse_float=Decimal)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _as_is(source: str) -> str:
    return TRAILING_COMMA.sub(r"\1", source)


def _backslashes(source: str) -> str:
    """Take every backslash of a text with an illegal escape literally: such a writer escapes nothing."""
    if BAD_ESCAPE.search(source) is None:
        return source
    return LONE_BACKSLASH.sub(r"\\\\", source)


def _values(source: str) -> str:
    """Quote bare words, undo doubled quotes."""
    source = DOUBLED_QUOTES.sub(r'"\1"', source)
    return BARE_WORD.sub(lambda m: m[0] if m[2] in LITERALS else f'{m[1]}"{m[2]}"', source)


def _backslashes_and_values(source: str) -> str:
    return _values(_backslashes(source))


def _quotes(source: str) -> str:
    """Escape quotes inside names and other texts: a text ends where the next key, or the end of the object, follows."""

    def escaped(match: re.Match[str]) -> str:
        return match[1] + BARE_QUOTE.sub(r'\\"', match[2]) + match[3]

    source = _backslashes(source)
    name = NAME.search(source)
    if name is None:
        return TEXT_VALUE.sub(escaped, source)
    before, after = source[: name.start()], source[name.end() :]
    return TEXT_VALUE.sub(escaped, before) + escaped(name) + TEXT_VALUE.sub(escaped, after)


def _quotes_and_values(source: str) -> str:
    return _as_is(_quotes(_values(source)))
