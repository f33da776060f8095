"""The option ``--memory-limit``: how much memory the database engine may take before it spills to disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def _size(ctx: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Return a size as it was given."""
    from tracedb.storage.memory_size import SIZE

    if value is not None and not SIZE.fullmatch(value):
        raise click.BadParameter(f"{value!r} is not a size such as 500MB or 2GiB", ctx, parameter)
    return value


def memory_limit_option(text: str, default: str | None = None) -> Callable[[F], F]:
    """Add ``--memory-limit``; the command gets the size as text, for DuckDB, or None."""
    return click.option("--memory-limit", callback=_size, default=default, metavar="SIZE", help=text)
