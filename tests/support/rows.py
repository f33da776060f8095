"""Rows put into the tables by hand: the one way in which tests of views, reports and derived facts build them."""

from __future__ import annotations

from typing import Any

import duckdb

from tracedb.storage import lake_tables

TYPED = {"labels": "?::MAP(VARCHAR, VARCHAR)", "shape": "?::MAP(VARCHAR, BIGINT)"}
"""Columns whose values DuckDB cannot type by themselves: an empty dict is a STRUCT or a MAP."""

MOST = 100
"""Rows of one statement with a parameter for each value: a statement costs much more than a row."""
FEW = 10
"""Up to so many rows, a parameter for each value costs less than a list for each column."""


def insert(
    connection: duckdb.DuckDBPyConnection, table: str, columns: str, *rows: tuple[Any, ...], **shared: Any
) -> None:
    """Put rows into ``main.table``: columns by name, their values row by row, and values that all rows share."""
    names = [*columns.split(), *shared]
    given = [(*row, *shared.values()) for row in rows]
    into = f"INSERT INTO main.{table} ({', '.join(names)})"
    if len(given) > FEW and not TYPED.keys() & set(names):
        types = lake_tables.declared()[table]
        lists = ", ".join(f"unnest(?::{types[name]}[])" for name in names)
        connection.execute(f"{into} SELECT {lists}", [list(values) for values in zip(*given, strict=True)])
        return
    marks = f"({', '.join(TYPED.get(name, '?') for name in names)})"
    for first in range(0, len(given), MOST):
        some = given[first : first + MOST]
        connection.execute(f"{into} VALUES {', '.join([marks] * len(some))}", [value for row in some for value in row])
