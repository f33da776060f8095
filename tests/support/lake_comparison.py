"""Compare what a database and a lake answer, up to the numbers of captures."""

from __future__ import annotations

import math
import re
from typing import Any

import duckdb

from tracedb.storage import views

Row = tuple[Any, ...]
NUMBERED = ("collective_id", "set_id", "first_capture_id", "first_event_id")
"""Columns numbered by captures: a set, or an example, is named after its lowest number."""

EXAMPLES = {"v1.why": ("capture_id", "event_ids", "sql")}
"""Columns that name one of several equally good examples: the one with the lowest number."""


def numbers(database: duckdb.DuckDBPyConnection, lake: duckdb.DuckDBPyConnection) -> dict[int, int]:
    """Return the number in the database of each capture of the lake."""
    query = "SELECT coalesce(sha256, path) || '/' || part, capture_id FROM main.capture"
    here = dict(database.execute(query).fetchall())
    return {number: here[key] for key, number in lake.execute(query).fetchall()}


def public_views() -> list[str]:
    return [view.name for view in views.shipped() if not view.is_private]


def rows(connection: duckdb.DuckDBPyConnection, relation: str, of: dict[int, int]) -> list[Row]:
    """Return the rows in a canonical order, with capture numbers replaced."""
    asked = connection.execute(f"FROM {relation}")
    kept = [
        place
        for place, (name, *_) in enumerate(asked.description)
        if name not in (*NUMBERED, *EXAMPLES.get(relation, ()))
    ]
    found = [tuple(_replaced(row[place], of) for place in kept) for row in asked.fetchall()]
    return sorted(found, key=lambda row: [_key(value) for value in row])


def _replaced(value: Any, of: dict[int, int]) -> Any:
    if isinstance(value, dict):
        return {name: _replaced(item, of) for name, item in value.items()}
    if isinstance(value, list):
        return [_replaced(item, of) for item in value]
    if isinstance(value, str):  # a query about a capture
        return re.sub(r"\bcapture_id = (\d+)", lambda said: f"capture_id = {of.get(int(said[1]), said[1])}", value)
    return of.get(value, value) if isinstance(value, int) and not isinstance(value, bool) else value


def _key(value: Any) -> tuple[bool, str]:
    return value is None, f"{value:.6g}" if isinstance(value, float) else str(value)


def differences(ours: list[Row], theirs: list[Row]) -> list[tuple[Row, Row]]:
    """Return pairs of rows that differ: integers and texts at all, floating-point numbers by more than 1e-9."""
    assert len(ours) == len(theirs)
    return [(one, other) for one, other in zip(ours, theirs, strict=True) if not all(map(_same, one, other))]


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9) or (math.isnan(one) and math.isnan(other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)
