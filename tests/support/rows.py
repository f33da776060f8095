"""Rows put into the tables by hand: the one way in which tests of views, reports and derived facts build them."""

from __future__ import annotations

from typing import Any

import duckdb

TYPED = {"labels": "?::MAP(VARCHAR, VARCHAR)", "shape": "?::MAP(VARCHAR, BIGINT)"}
"""Columns whose values DuckDB cannot type by themselves: an empty dict is a STRUCT or a MAP."""


def insert(
    connection: duckdb.DuckDBPyConnection, table: str, columns: str, *rows: tuple[Any, ...], **shared: Any
) -> None:
    """Put rows into ``main.table``: columns by name, their values row by row, and values that all rows share."""
    names = [*columns.split(), *shared]
    if rows:
        marks = ", ".join(TYPED.get(name, "?") for name in names)
        statement = f"INSERT INTO main.{table} ({', '.join(names)}) VALUES ({marks})"
        connection.executemany(statement, [[*row, *shared.values()] for row in rows])
