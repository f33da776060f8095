"""Values of scalar inputs, read from the text of a trace by the type that the operator's schema declares."""

from __future__ import annotations

import re
from typing import Any

MISSING = object()
"""No value was recorded, and the schema has no default."""

_INTEGER = re.compile(r"[-+]?\d{1,19}")
_LIST = re.compile(r"\[(.*)\]", re.DOTALL)
MOST_ITEMS = 10_000
"""Longest list that is read."""
_DTYPES = (
    *("uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"),
    *("complex32", "complex64", "complex128", "bool", "qint8", "quint8", "qint32", "bfloat16"),
)
"""Element types by their number in c10::ScalarType."""
_MEMORY_FORMATS = ("contiguous_format", "preserve_format", "channels_last", "channels_last_3d")
"""By their number in c10::MemoryFormat."""


def read(text: str, kind: str) -> Any:
    """Return the value of a text for a schema type such as ``int``, ``List[float]`` or ``ScalarType``.

    Raises ``ValueError`` if the text is no such value.
    """
    if kind.startswith("List[") and kind.endswith("]"):
        return _items(text, kind[5:-1])
    if kind in ("int", "SymInt"):
        return _integer(text)
    if kind == "float":
        return float(text)
    if kind == "bool":
        return _boolean(text)
    if kind == "number":
        return _number(text)
    if kind == "ScalarType":
        return _of_torch(_DTYPES, _integer(text))
    if kind == "MemoryFormat":
        return _of_torch(_MEMORY_FORMATS, _integer(text))
    raise ValueError(f"values of type {kind} are not read from a trace")


def _items(text: str, kind: str) -> list[Any]:
    found = _LIST.fullmatch(text.strip())
    if found is None:
        raise ValueError("not a list")
    items = [item.strip() for item in found[1].split(",")] if found[1].strip() else []
    if len(items) > MOST_ITEMS:
        raise ValueError(f"a list of {len(items)} values")
    return [read(item, kind) for item in items]


def _integer(text: str) -> int:
    if _INTEGER.fullmatch(text) is None or not -(2**63) <= int(text) < 2**63:
        raise ValueError("not a 64-bit integer")
    return int(text)


def _boolean(text: str) -> bool:
    if text not in ("True", "False", "1", "0"):
        raise ValueError("not a truth value")
    return text in ("True", "1")


def _number(text: str) -> int | float | bool:
    if text in ("True", "False"):
        return text == "True"
    return _integer(text) if _INTEGER.fullmatch(text) else float(text)


def _of_torch(names: tuple[str, ...], number: int) -> Any:
    import torch

    if not 0 <= number < len(names):
        raise ValueError("not one of the known numbers")
    return getattr(torch, names[number])
