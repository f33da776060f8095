"""Physical features of operators of one's own: functions from a shape to FLOPs, bytes and sizes.

A function comes from the caller (``tracedb.fit(features=…)``), from a Python file (``--features``) or from an installed
package (entry points ``tracedb.features``, named after the operator). It is not stored with the models: to predict with
them, the same function must be given again.
"""

from __future__ import annotations

import math
import runpy
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from types import MappingProxyType

from tracedb.errors import TracedbError, UsageError

Features = Callable[[Mapping[str, int]], Mapping[str, float]]
"""Returns positive numbers for a shape: ``flops``, ``bytes``, and sizes that the time depends on otherwise."""

GROUP = "tracedb.features"
_GIVEN: ContextVar[Mapping[str, Features]] = ContextVar("features", default=MappingProxyType({}))


@contextmanager
def using(given: Mapping[str, Features] | None) -> Iterator[None]:
    """Use functions by operator, before those that are installed."""
    for name, function in (given or {}).items():
        if not callable(function):
            raise UsageError(f"features of {name!r}: a {type(function).__name__}, expected a function of a shape")
    token = _GIVEN.set(given or {})
    try:
        yield
    finally:
        _GIVEN.reset(token)


def are_given() -> bool:
    """Whether the caller gave functions, which other processes do not have."""
    return bool(_GIVEN.get())


def from_file(path: Path) -> dict[str, Features]:
    """Return the dictionary ``FEATURES`` of a Python file, which is run with the user's permissions."""
    if not path.is_file():
        raise UsageError(f"{path}: no such Python file")
    found = runpy.run_path(str(path)).get("FEATURES")
    if not isinstance(found, dict) or not found:
        raise TracedbError(f"{path}: has no dictionary FEATURES of functions by operator")
    return found


def function(operator: str) -> Features | None:
    """Return the function of an operator; None if it has none."""
    return _GIVEN.get().get(operator) or _installed(operator)


@cache
def _installed(operator: str) -> Features | None:
    for point in entry_points(group=GROUP):
        if point.name == operator:
            try:
                found: Features = point.load()
            except ImportError as error:
                raise TracedbError(f"features of {operator!r} in {point.value} cannot be imported: {error}") from error
            return found
    return None


def of(operator: str, shape: Mapping[str, int]) -> dict[str, float] | None:
    """Return the features of a shape; None if the operator has no function. Raises ``UsageError`` for other values."""
    found = function(operator)
    if found is None:
        return None
    values = found(dict(shape))
    if not isinstance(values, Mapping) or not values:
        raise UsageError(f"features of {operator!r} at {dict(shape)}: {values!r}, expected numbers by name")
    for name, value in values.items():
        if not isinstance(value, int | float) or not math.isfinite(value) or value <= 0:
            raise UsageError(
                f"features of {operator!r} at {dict(shape)}: {name} is {value!r}, expected a number above 0"
            )
    return {name: float(value) for name, value in values.items()}
