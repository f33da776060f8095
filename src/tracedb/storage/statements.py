"""Run the statements of a shipped SQL text, and set the variables that they read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracedb.storage.connection import quoted

if TYPE_CHECKING:
    import duckdb


def run(connection: duckdb.DuckDBPyConnection, sql: str) -> int:
    """Run all statements of a text; returns the number of rows that the last one wrote."""
    rows = 0
    for statement in connection.extract_statements(sql):
        answer = connection.execute(statement).fetchone()
        rows = int(answer[0]) if answer and isinstance(answer[0], int) else 0
    return rows


def set_variables(connection: duckdb.DuckDBPyConnection, **values: bool | int | str | None) -> None:
    """Set variables that statements read with ``getvariable``; None is NULL."""
    for name, value in values.items():
        text = "NULL" if value is None else quoted(value) if isinstance(value, str) else str(value).lower()
        connection.execute(f"SET VARIABLE {name} = {text}")
