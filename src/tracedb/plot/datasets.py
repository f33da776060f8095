"""Rows of charts, kept beside them: Altair copies and checks what is inside a chart, which takes long for many rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

Datasets = dict[str, list[dict[str, Any]]]

_HELD: ContextVar[Datasets] = ContextVar("datasets")


@contextmanager
def collected() -> Iterator[Datasets]:
    """Yield the rows that charts made inside the block name, by name."""
    held: Datasets = {}
    token = _HELD.set(held)
    try:
        yield held
    finally:
        _HELD.reset(token)


def data(rows: list[dict[str, Any]]) -> Any:
    """Return the data of a chart: the name under which ``collected`` has the rows."""
    held = _HELD.get()
    name = f"rows_{len(held)}"
    held[name] = rows
    import altair as alt  # the extra: without it, pages have no pictures

    return alt.NamedData(name=name)
