"""Build records from JSON with values of unexpected types: unreadable fields are left out."""

from __future__ import annotations

from math import nan
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec

from tracedb_rocprof.missing import BAD

EMPTY: dict[type, Any] = {int: BAD, float: nan, str: ""}
"""Stands for an unreadable scalar."""


class Mender:
    """Builds records from decoded JSON, field by field. Missing and null fields get their default."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        """Unreadable fields; numbers among them are ``BAD`` or NaN."""

    def record(self, found: dict[str, Any], kind: Any) -> Any:
        """Return an object as a record of a kind."""
        hints = get_type_hints(kind)
        return kind(
            **{
                name: self._value(found[name], hint, name)
                for name, hint in hints.items()
                if found.get(name) is not None
            }
        )

    def _value(self, found: Any, hint: Any, name: str) -> Any:
        if isinstance(hint, UnionType) or get_origin(hint) is Union:  # the latter for annotated types
            (hint,) = (one for one in get_args(hint) if one is not NoneType)
        if hint is Any:
            return found
        if get_origin(hint) is dict:
            if isinstance(found, dict):
                return found
            self.faults.append(name)
            return {}
        if get_origin(hint) is list:
            (item,) = get_args(hint)
            if isinstance(found, list):
                return [self._value(one, item, name) for one in found]
            self.faults.append(name)
            return []
        if issubclass(hint, msgspec.Struct):
            if isinstance(found, dict):
                return self.record(found, hint)
            self.faults.append(name)
            return hint()
        return self._scalar(found, hint, name)

    def _scalar(self, found: Any, hint: type, name: str) -> Any:
        is_number = isinstance(found, int | float) and not isinstance(found, bool)
        if hint is str and isinstance(found, str):
            return found
        if hint is float and is_number:
            return _float(found)
        if hint is int and is_number and found == found // 1:
            return max(int(found), BAD)
        if hint is str:
            self.faults.append(name)
        return EMPTY[hint]


def _float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return nan
