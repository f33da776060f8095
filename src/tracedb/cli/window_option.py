"""The option ``--window``: a period of time after the first GPU event of a run."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])
_UNITS = {"ns": 1, "us": 1_000, "µs": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
_TIME = re.compile(r"(\d+)(?:\.(\d+))?(ns|us|µs|ms|s)")


def _window(ctx: click.Context, parameter: click.Parameter, value: str | None) -> tuple[int, int] | None:
    """Return a window in ns; digits beyond the nanosecond are dropped."""
    if value is None:
        return None
    ends = [_TIME.fullmatch(part) for part in value.split(":")]
    if len(ends) != 2 or None in ends:
        raise click.BadParameter(f"{value!r} is not FROM:TO with units, such as 10ms:12.5ms", ctx, parameter)
    start, end = (_nanoseconds(*end.groups()) for end in ends if end is not None)
    if end <= start:
        raise click.BadParameter(f"{value!r} ends before it begins", ctx, parameter)
    return start, end


def _nanoseconds(whole: str, part: str | None, unit: str) -> int:
    digits = len(str(_UNITS[unit])) - 1
    return int(whole) * _UNITS[unit] + int(((part or "") + "0" * digits)[:digits] or "0")


def window_option(text: str) -> Callable[[F], F]:
    """Add ``--window``; the command gets begin and end in ns, or None."""
    return click.option("--window", callback=_window, metavar="FROM:TO", help=text)
