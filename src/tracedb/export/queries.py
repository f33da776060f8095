"""Run the statements of ``sql/export``, which compute every number that an export writes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tracedb.report import filter_sql, view_template
from tracedb.storage import resources, statements

if TYPE_CHECKING:
    import duckdb

    from tracedb.report.filters import Scope

BLOCK = 10_000
"""Rows held at a time."""


def text(name: str) -> str:
    """Return the SQL of ``sql/export/NAME.sql``."""
    return resources.text("sql", "export", f"{name}.sql")


def run(connection: duckdb.DuckDBPyConnection, name: str, scope: Scope | None = None) -> int:
    """Run the statements of a file and return how many rows the last one wrote.

    The filters of ``scope`` go into the hooks. Raises ``UsageError`` if they do not apply.
    """
    sql = text(name)
    if scope is not None:
        sql = view_template.resolve(sql, filter_sql.edits(scope, sql, "this export"))
    return statements.run(connection, sql)


def names(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Return the columns of the current result."""
    return [str(column[0]) for column in connection.description or ()]


def rows(connection: duckdb.DuckDBPyConnection) -> Iterator[Sequence[Any]]:
    """Yield the rows of the last result, a block at a time."""
    while block := connection.fetchmany(BLOCK):
        yield from block
