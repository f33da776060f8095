"""Repair one malformed event. If that fails, only this event is lost.

Each step handles a fault that real profilers wrote: Windows paths with bare backslashes, quotes inside names,
control characters, values without quotes or with doubled ones, trailing commas.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import Any

CONTROL = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
ESCAPED = {"\b": r"\b", "\t": r"\t", "\n": r"\n", "\f": r"\f", "\r": r"\r"}
BAD_ESCAPE = re.compile(r'\\(?!["\\/bfnrtu])|\\u(?![0-9a-fA-F]{4})')
LONE_BACKSLASH = re.compile(r'\\(?!")')
BARE_WORD = re.compile(r"(:\s*)(-?[A-Za-z_][\w .:+-]{0,99}?)(?=\s*[,}\]])")
SHORTENED = re.compile(r"(:\s*)(\[[\d, ]*\.\.\.[\d, ]*\])")
NO_VALUE = re.compile(r'(":\s*)(?=[,}])')
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
ARGUMENTS = re.compile(r',\s*"args"\s*:\s*\{')
ARGUMENT = re.compile(r'"([^"\\]{1,40})"\s*:\s*("[^"\\]*"|-?[1-9]\d{0,18}|0|\[[1-9][\d, \n]*\d\])(?=\s*[,}])')
ONCE = re.compile(r'"(ph|cat|ts)"\s*:')
BARE_QUOTE = re.compile(r'(?<!\\)"')
SHORT = 64 << 10  # in longer events only the name is searched for unescaped quotes
LONGEST = 4 << 20  # longer events are not repaired


def mend(text: bytes) -> dict[str, Any] | None:
    """Return the event that ``text`` was meant to be, or None."""
    if len(text) > LONGEST:
        return None
    source = text.decode("utf-8", errors="replace")
    is_short = len(text) <= SHORT
    for attempt in (_as_is, _backslashes, _values, _backslashes_and_values) if is_short else (_as_is, _backslashes):
        found = _load(attempt(source))
        if found is not None:
            return found
    for attempt in (_quotes, _quotes_and_values) if is_short else (_quotes_in_name,):
        found = _load(attempt(source))
        if found is not None and _is_plausible(found):
            return found
    return _without_some_arguments(source) if is_short else None


def _is_plausible(event: dict[str, Any]) -> bool:
    """False if a wrongly escaped quote left unknown keys at the top level, or made the phase too long."""
    return event.keys() <= TOP_KEYS and len(str(event.get("ph", "X"))) == 1


def _without_some_arguments(source: str) -> dict[str, Any] | None:
    """Read everything before the arguments as a whole, and those arguments that can be read one by one."""
    arguments = ARGUMENTS.search(source)
    keys = ONCE.findall(source)
    if arguments is None or "ph" not in keys or len(keys) != len(set(keys)):  # repeated keys: two events merged
        return None
    head = source[: arguments.start()] + "}"
    for attempt in (_as_is, _backslashes, _quotes):
        found = _load(attempt(head))
        if found is not None and _is_plausible(found):
            args = (_load(f"{{{match[0]}}}") for match in ARGUMENT.finditer(_values(source[arguments.end() :])))
            return {**found, "args": {key: value for arg in args if arg for key, value in arg.items()}}
    return None


def clean(text: str) -> str:
    """Return ``text`` without control characters and lone surrogates.

    Those with a JSON escape become this escape: the profiler writes no line breaks, and what looks like one is nearly
    always a Windows path whose backslashes were not escaped (``torch\\nn\\functional.py``).
    """
    return CONTROL.sub(_without_control, text)


def _without_control(found: re.Match[str]) -> str:
    return ESCAPED.get(found[0], "\N{REPLACEMENT CHARACTER}" if found[0] >= "\ud800" else "")


def _load(source: str) -> dict[str, Any] | None:
    try:
        value = json.loads(source, strict=False, parse_float=Decimal)
    except (ValueError, RecursionError, ArithmeticError):  # ArithmeticError: an enormous exponent
        return None
    return value if isinstance(value, dict) else None


def _as_is(source: str) -> str:
    return TRAILING_COMMA.sub(r"\1", source)


def _backslashes(source: str) -> str:
    """Take every backslash of a text with an illegal escape literally: such a writer escapes none of them."""
    if BAD_ESCAPE.search(source) is None:
        return source
    return LONE_BACKSLASH.sub(r"\\\\", source)


def _values(source: str) -> str:
    """Quote bare words and shortened lists, undo doubled quotes, and insert null for missing values."""
    source = DOUBLED_QUOTES.sub(r'"\1"', source)
    source = SHORTENED.sub(r'\1"\2"', NO_VALUE.sub(r"\1null", source))
    return BARE_WORD.sub(lambda m: m[0] if m[2] in LITERALS else f'{m[1]}"{m[2]}"', source)


def _backslashes_and_values(source: str) -> str:
    return _values(_backslashes(source))


def _quotes(source: str) -> str:
    """Escape quotes inside names and other texts: a text ends before the next key or the end of the object."""
    source = _backslashes(source)
    name = NAME.search(source)
    if name is None:
        return TEXT_VALUE.sub(_escaped, source)
    before, after = source[: name.start()], source[name.end() :]
    return TEXT_VALUE.sub(_escaped, before) + _escaped(name) + TEXT_VALUE.sub(_escaped, after)


def _quotes_in_name(source: str) -> str:
    return NAME.sub(_escaped, _backslashes(source), count=1)


def _escaped(text: re.Match[str]) -> str:
    inner = BARE_QUOTE.sub(r'\\"', text[2])
    # A trailing backslash would escape the closing quote.
    backslashes = len(inner) - len(inner.rstrip("\\"))
    return text[1] + inner + "\\" * (backslashes % 2) + text[3]


def _quotes_and_values(source: str) -> str:
    return _as_is(_quotes(_values(source)))
