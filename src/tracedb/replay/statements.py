"""Runs the statements of ``sql/replay``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracedb.storage import resources
from tracedb.storage.connection import quoted

if TYPE_CHECKING:
    import duckdb


def run(connection: duckdb.DuckDBPyConnection, *names: str) -> None:
    """Run the statements of ``sql/replay/NAME.sql``, one file after the other."""
    for name in names:
        for statement in connection.extract_statements(resources.text("sql", "replay", f"{name}.sql")):
            connection.execute(statement)


def set_variables(connection: duckdb.DuckDBPyConnection, **values: str | int | None) -> None:
    """Set variables that the statements read by ``getvariable``; None is NULL."""
    for name, value in values.items():
        text = "NULL" if value is None else quoted(value) if isinstance(value, str) else str(value)
        connection.execute(f"SET VARIABLE {name} = {text}")
