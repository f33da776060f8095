"""Rows put into the tables by hand: the one way in which tests of views, reports and derived facts build them."""

from __future__ import annotations

from typing import Any

import duckdb

TYPED = {"labels": "?::MAP(VARCHAR, VARCHAR)", "shape": "?::MAP(VARCHAR, BIGINT)"}
"""Columns whose values DuckDB cannot type by themselves: an empty dict is a STRUCT or a MAP."""

MOST = 100
"""Rows of one statement: it costs much more than a row."""


def insert(
    connection: duckdb.DuckDBPyConnection, table: str, columns: str, *rows: tuple[Any, ...], **shared: Any
) -> None:
    """Put rows into ``main.table``: columns by name, their values row by row, and values that all rows share."""
    names = [*columns.split(), *shared]
    marks = f"({', '.join(TYPED.get(name, '?') for name in names)})"
    for first in range(0, len(rows), MOST):
        some = rows[first : first + MOST]
        statement = f"INSERT INTO main.{table} ({', '.join(names)}) VALUES {', '.join([marks] * len(some))}"
        connection.execute(statement, [value for row in some for value in (*row, *shared.values())])
