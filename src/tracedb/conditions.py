"""Filters and ``--by`` as SQL over the base aliases of a view's text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from tracedb import hooks, schema
from tracedb.database import identifier, quoted
from tracedb.errors import UsageError
from tracedb.selection import Filters, Scope, capture_conditions, label, one_of

if TYPE_CHECKING:
    import duckdb

BASES = {"k": "kernels", "e": "_gpu_event", "r": "_range"}
"""Alias in a view's text → the view that it stands for."""

_BY_COLUMNS = {"rank": "rank", "device": "device_id", "source": "source", "vendor": "vendor", "step": "step"}


def edits(
    connection: duckdb.DuckDBPyConnection, scope: Scope, text: str, report: str, taken: Sequence[str] = ()
) -> hooks.Edits:
    """Return what goes into the hooks of a view's text.

    ``taken``: names of columns that a ``--by`` column may not have. Raises ``UsageError`` where the view has nothing
    that a filter or a ``--by`` column could be about.
    """
    used = hooks.bases(text, "filter") | hooks.bases(text, "by")
    columns = {base: _columns(connection, scope.version, base) for base in sorted(used)}
    filters = {base: _base_conditions(scope, base, columns[base]) for base in columns}
    placed = {word for conditions in filters.values() for word, _ in conditions}
    for word in _words(scope.filters):
        if word not in placed:
            raise UsageError(f"report {report} cannot be filtered by {word}")
    by = [_by(name, taken) for name in scope.filters.by]
    for name in scope.filters.by:
        _check_by(name, columns, text, report)
    return hooks.Edits(
        by=by,
        filters={base: [condition for _, condition in conditions] for base, conditions in filters.items()},
        joins={
            base: _range_join(scope, base) for base in columns if base != "r" and "range" in scope.filters.by
        },
    )


def _columns(connection: duckdb.DuckDBPyConnection, version: str, base: str) -> set[str]:
    return {column.name for column in schema.columns(connection, version, BASES[base])}


def _words(filters: Filters) -> list[str]:
    given: list[tuple[str, object]] = [
        ("--rank", filters.ranks),
        ("--source", filters.sources),
        ("--where", filters.where),
        ("--device", filters.devices),
        ("--skip-warmup", filters.skip_warmup),
        ("--range", filters.range is not None),
    ]
    return [word for word, value in given if value]


def _base_conditions(scope: Scope, base: str, columns: set[str]) -> list[tuple[str, str]]:
    """Return (option, condition) of each filter that a base alias has the columns for."""
    filters = scope.filters
    found = []
    if {"rank", "source", "labels"} <= columns:
        words = [word for word in _words(filters) if word in ("--rank", "--source", "--where")]
        found += [
            (word, condition)
            for word, condition in zip(
                _repeat(words, filters), capture_conditions(filters, base), strict=True
            )
        ]
    if filters.devices and "device_id" in columns:
        found.append(("--device", one_of(f"{base}.device_id", filters.devices)))
    if filters.skip_warmup and "step_index" in columns:
        found.append(("--skip-warmup", f"{base}.step_index > {filters.skip_warmup}"))
    is_joined = "range" in filters.by and base != "r"  # the join to the ranges leaves out the others by itself
    if filters.range is not None and (base == "r" or "event_id" in columns):
        found.append(("--range", "true" if is_joined else _range_condition(scope, base)))
    return found


def _repeat(words: Sequence[str], filters: Filters) -> list[str]:
    return [word for word in words for _ in range(len(filters.where) if word == "--where" else 1)]


def _range_condition(scope: Scope, base: str) -> str:
    glob = quoted(scope.filters.range or "*")
    if base == "r":
        return f"r.name GLOB {glob}"
    return (
        f"EXISTS (SELECT 1 FROM {scope.version}._range_kernel AS q WHERE q.capture_id = {base}.capture_id "
        f"AND q.event_id = {base}.event_id AND q.rule = {quoted(scope.rule)} AND q.name GLOB {glob})"
    )


def _range_join(scope: Scope, base: str) -> str:
    """Return the join that gives a kernel once for each name of the ranges around it."""
    glob = f" AND q.name GLOB {quoted(scope.filters.range)}" if scope.filters.range is not None else ""
    return (
        f"INNER JOIN (\n    SELECT DISTINCT q.capture_id, q.event_id, q.name\n"
        f"    FROM {scope.version}._range_kernel AS q\n    WHERE q.rule = {quoted(scope.rule)}{glob}\n"
        f") AS {base}_range ON {base}_range.capture_id = {base}.capture_id AND {base}_range.event_id = {base}.event_id"
    )


def _by(name: str, taken: Sequence[str]) -> hooks.By:
    if name == "range":
        return hooks.By(name, lambda base: "r.name" if base == "r" else f"{base}_range.name")
    if name in _BY_COLUMNS:
        return hooks.By(name, _column_of(_BY_COLUMNS[name]))
    return hooks.By(f"label {name}" if name in taken else name, _label_of(name))


def _column_of(column: str) -> Callable[[str], str]:
    return lambda base: f"{base}.{identifier(column)}"


def _label_of(key: str) -> Callable[[str], str]:
    return lambda base: label(base, key)


def _check_by(name: str, columns: Mapping[str, set[str]], text: str, report: str) -> None:
    """Raise ``UsageError`` unless every base that a view groups over has what the column is made of."""
    grouped, joined = hooks.bases(text, "by"), hooks.bases(text, "join")
    needed = _BY_COLUMNS.get(name, "labels")
    able = {base for base in grouped if (base == "r" or base in joined if name == "range" else needed in columns[base])}
    if not grouped or able != grouped:
        raise UsageError(f"report {report} cannot be grouped by {name}")
