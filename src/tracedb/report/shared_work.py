"""Work that several reports on one read-only connection have in common; inside ``shared`` it is done once.

Each report asks the same questions about the chosen captures, and many match the collectives of all ranks first: for
its rows, and for its warnings. Outside ``shared`` everything is done anew each time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import duckdb

from tracedb.storage.views import View, by_dependency, outdated

if TYPE_CHECKING:
    from tracedb.report.filters import Scope

Result = TypeVar("Result")

SHARED_VIEWS = ("_capture_set", "_collective_member", "_kernel_class", "_op_work")
"""Private views that are kept in temporary tables: slow to compute, few rows, and read by many views."""
_NAMES = re.compile(r"'(?:[^']|'')*'|--[^\n]*|/\*.*?\*/|\b(v\d+)\.(\w+)\b", re.DOTALL)


@dataclass
class _Held:
    selection: object = None
    """Which captures ``temp.selected_capture`` holds, and what steps are."""
    results: dict[object, Any] = field(default_factory=dict)
    latest: dict[str, object] = field(default_factory=dict)
    views: dict[str, str] = field(default_factory=dict)
    """Views of which there is a temporary table or view, and which of them, in the order in which they were made."""
    views_are_of: object = None


_HELD: ContextVar[_Held | None] = ContextVar("shared_work", default=None)


@contextmanager
def shared() -> Iterator[None]:
    """Keep results for the reports inside. They must use one connection, whose database does not change."""
    token = _HELD.set(_Held())
    try:
        yield
    finally:
        _HELD.reset(token)


@contextmanager
def within_report(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Keep results for a single report, unless they are kept for several.

    Its temporary tables and views are dropped, so that rows must not be read from them afterwards.
    """
    if _HELD.get() is not None:
        yield
        return
    with shared():
        held = _HELD.get()
        assert held is not None
        try:
            yield
        finally:
            with suppress(duckdb.Error):  # after a failure, of which that of the report itself is told
                for name, kind in reversed(held.views.items()):
                    connection.execute(f"DROP {kind} temp.{name}")


def select(key: object, work: Callable[[], None]) -> None:
    """Choose captures by calling ``work``, unless the last call had an equal key."""
    held = _HELD.get()
    if held is None or held.selection != key:
        work()
        if held is not None:
            held.selection = key
            held.latest.clear()


def once(key: object, work: Callable[[], Result]) -> Result:
    """Return the result of ``work``, which depends on its key, the database and the chosen captures alone."""
    held = _HELD.get()
    if held is None:
        return work()
    full = (repr(held.selection), repr(key))
    if full not in held.results:
        held.results[full] = work()
    found: Result = held.results[full]
    return found


def ask(connection: duckdb.DuckDBPyConnection, query: str) -> list[tuple[Any, ...]]:
    """Return the rows of a query over the database and ``temp.selected_capture``."""
    return once(query, lambda: connection.execute(query).fetchall())


def last(name: str, key: object, work: Callable[[], None]) -> None:
    """Fill a temporary table by calling ``work``, unless it was last filled for an equal key and the same captures."""
    held = _HELD.get()
    if held is None or held.latest.get(name) != key:
        work()
        if held is not None:
            held.latest[name] = key


def reading(connection: duckdb.DuckDBPyConnection, scope: Scope, text: str) -> str:
    """Return SQL with views that read ``SHARED_VIEWS`` replaced by temporary ones over their kept rows."""
    held = _HELD.get()
    if held is None or once("outdated views", lambda: outdated(connection)):
        return text
    of = (scope.version, scope.filters.captures, scope.filters.step_range)  # what the rows depend on
    if held.views_are_of != of:
        held.views_are_of = of
        held.views.clear()
    dependent = once(("views over shared ones", scope.version), lambda: over_shared(scope.version))
    for name in [name for name in dependent if name in _read_by(text, scope.version, dependent)]:
        if name not in held.views:
            kind = "TABLE" if name in SHARED_VIEWS else "VIEW"
            select = _replaced(View(scope.version, name).select, scope.version, dependent)
            connection.execute(f"CREATE OR REPLACE TEMP {kind} {name} AS {select}")
            held.views[name] = kind
    return _replaced(text, scope.version, dependent)


def over_shared(version: str) -> dict[str, set[str]]:
    """Return the shared views and all that read them, in an order in which they can be created, each with its needs."""
    found: dict[str, set[str]] = {}
    for view in by_dependency(version):
        if view.name in SHARED_VIEWS or view.needs & found.keys():
            found[view.name] = view.needs
    return found


def _read_by(text: str, version: str, dependent: dict[str, set[str]]) -> set[str]:
    """Return the views among ``dependent`` that a text reads, directly or through others."""
    left = [match[2] for match in _NAMES.finditer(text) if match[1] == version and match[2] in dependent]
    found: set[str] = set()
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += dependent[name] & dependent.keys()
    return found


def _replaced(text: str, version: str, dependent: dict[str, set[str]]) -> str:
    """Return SQL that reads temporary views in place of those in ``dependent``; strings and comments stay."""

    def name(match: re.Match[str]) -> str:
        return f"temp.{match[2]}" if match[1] == version and match[2] in dependent else match[0]

    return _NAMES.sub(name, text)
