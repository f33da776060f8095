"""nsys's tables over any capture, so that queries written for its SQLite exports run (``--as nsys``)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tracedb.errors import TracedbError
from tracedb.storage import resources

if TYPE_CHECKING:
    import duckdb

    from tracedb.storage.connection import Settings

SETTINGS: Settings = {"integer_division": True}
"""What must be set when the database is opened: ``/`` of whole numbers is whole in SQLite."""


def statements(captures: Sequence[int] = ()) -> str:
    """Return the SQL that makes nsys's tables as temporary views, of all captures or of some."""
    chosen = f" WHERE c.capture_id IN ({', '.join(map(str, captures))})" if captures else ""
    return resources.text("sql", "nsys", "tables.sql").replace("{captures}", chosen)


def has(name: str) -> bool:
    """Whether nsys's exports have a table of this name, in any case of letters, and tracedb provides it."""
    return re.search(rf"\bVIEW\s+(?:\w+\.)?{re.escape(name)}\b", statements(), re.IGNORECASE) is not None


def install(connection: duckdb.DuckDBPyConnection, captures: Sequence[int] = ()) -> None:
    """Make nsys's tables as temporary views of a connection, of all captures or of some."""
    connection.execute(statements(captures))


def pooled(connection: duckdb.DuckDBPyConnection) -> int:
    """Return the number of captures that the tables hold."""
    ((count,),) = connection.execute("SELECT count(*) FROM nsys_capture").fetchall()
    return int(count)


def pooled_warning(count: int) -> str:
    """Return what to tell people whose tables hold several captures: most queries written for nsys expect one."""
    return f"nsys's tables hold {count} captures, whose clocks may differ; choose one with --capture, or use captureId"


def translated(query: str) -> str:
    """Translate a query from SQLite's dialect to DuckDB's. Raises ``TracedbError`` if it is not SQL."""
    import sqlglot
    from sqlglot.errors import SqlglotError

    try:
        return ";\n".join(sqlglot.transpile(query, read="sqlite", write="duckdb"))
    except SqlglotError as error:
        raise TracedbError(f"this is not SQLite's SQL: {str(error).splitlines()[0]}") from error
