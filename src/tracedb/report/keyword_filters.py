"""The filters of ``tracedb.report()``: keyword arguments, checked before any of them reaches SQL."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tracedb.report.filters import Filters

RULES = ("thread", "process", "time")


def filters(given: Mapping[str, Any]) -> Filters:
    """Return the filters given by keyword arguments; None stands for a filter that is not given.

    Raises ``TypeError`` for an unknown filter or a value of the wrong type, ``ValueError`` for a value out of range.
    """
    values: dict[str, Any] = {}
    for said, value in given.items():
        name = _ALIASES.get(said, said)
        if name not in _FILTERS:
            raise TypeError(f"report() has no filter {said!r}; there are {', '.join(_FILTERS)}")
        field, checked = _FILTERS[name]
        if value is not None:
            values[field] = checked(said, value)
    return Filters(**values)


def number_from_zero(name: str, value: Any) -> int:
    """Return a whole number that is not negative. Raises ``TypeError`` or ``ValueError``."""
    whole = _whole(name, value, "a whole number")
    if whole < 0:
        raise ValueError(f"{name} must not be negative: {whole}")
    return whole


def texts(name: str, value: Any) -> tuple[str, ...]:
    """Return one text or several as a tuple. Raises ``TypeError``."""
    several = _several(name, value, "a text or a list of texts")
    for one in several:
        _text(name, one, "a text or a list of texts")
    return several


def _wrong(name: str, expected: str, value: Any) -> TypeError:
    return TypeError(f"{name} must be {expected}, not {_shown(value)}")


def _shown(value: Any) -> str:
    text = repr(value) if isinstance(value, str | int | float | list | tuple | dict) else type(value).__name__
    return text if len(text) <= 80 else f"{text[:79]}…"


def _whole(name: str, value: Any, expected: str) -> int:
    try:
        if isinstance(value, bool):
            raise TypeError
        return operator.index(value)
    except TypeError:
        raise _wrong(name, expected, value) from None


def _text(name: str, value: Any, expected: str = "a text") -> str:
    if not isinstance(value, str):
        raise _wrong(name, expected, value)
    return value


def _several(name: str, value: Any, expected: str) -> tuple[Any, ...]:
    """Return one value or several as a tuple."""
    if isinstance(value, Mapping | bytes):
        raise _wrong(name, expected, value)
    return tuple(value) if isinstance(value, Iterable) and not isinstance(value, str) else (value,)


def _whole_numbers(name: str, value: Any) -> tuple[int, ...]:
    expected = "a whole number or a list such as [0, 1]"
    try:
        return tuple(_whole(name, one, expected) for one in _several(name, value, expected))
    except TypeError:
        raise _wrong(name, expected, value) from None


def _captures(name: str, value: Any) -> tuple[str, ...]:
    expected = "a capture's number, a part of its path, or a list of these"
    found = _several(name, value, expected)
    return tuple(one if isinstance(one, str) else str(_whole(name, one, expected)) for one in found)


def _labels(name: str, value: Any) -> dict[str, tuple[str, ...]]:
    expected = 'a mapping of labels to values, such as {"channels": [4, 8]}'
    if not isinstance(value, Mapping):
        raise _wrong(name, expected, value)
    return {str(key): tuple(map(str, _several(name, one, expected))) for key, one in value.items()}


def _rule(name: str, value: Any) -> str:
    if value not in RULES:
        raise ValueError(f"{name} must be one of {', '.join(RULES)}, not {_shown(value)}")
    return str(value)


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise _wrong(name, "True or False", value)
    return value


def _period(name: str, value: Any) -> tuple[int, int]:
    expected = "a pair of nanoseconds, the start and the end after it"
    found = _several(name, value, expected)
    if len(found) != 2:
        raise _wrong(name, expected, value)
    start, end = (_whole(name, one, expected) for one in found)
    if not 0 <= start < end:
        raise ValueError(f"{name} must be {expected}, not {_shown(value)}")
    return start, end


_FILTERS: dict[str, tuple[str, Callable[[str, Any], Any]]] = {
    "rank": ("ranks", _whole_numbers),
    "device": ("devices", _whole_numbers),
    "source": ("sources", texts),
    "capture": ("captures", _captures),
    "path": ("paths", texts),
    "classes": ("classes", texts),
    "where": ("where", _labels),
    "range": ("range", texts),
    "rule": ("rule", _rule),
    "skip_warmup": ("skip_warmup", number_from_zero),
    "step_range": ("step_range", _text),
    "window": ("window", _period),
    "across_ranks": ("across_ranks", _flag),
    "counted": ("counted", _flag),
    "attention_as_matmul": ("attention_as_matmul", _flag),
    "sort": ("sort", texts),
    "by": ("by", texts),
}
"""Filter → field of ``Filters``, and what checks its value. The names are those of docs/python.md."""
_ALIASES = {
    "ranks": "rank",
    "devices": "device",
    "sources": "source",
    "captures": "capture",
    "paths": "path",
    "class_": "classes",
}
"""Further names, accepted but not listed."""
