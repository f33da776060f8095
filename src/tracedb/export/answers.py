"""The answers behind an export: stored in a temporary table and described by the export's own views."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracedb.output import Answer, from_sql
from tracedb.report import registry
from tracedb.report.query import plan
from tracedb.report.run import run
from tracedb.storage.connection import identifier, quoted
from tracedb.storage.views import CURRENT

if TYPE_CHECKING:
    from pathlib import Path

    import duckdb

    from tracedb.report.filters import Filters


def take(connection: duckdb.DuckDBPyConnection, path: Path, report: str, filters: Filters) -> Answer:
    """Run a report into ``temp.export_answer``; the result has its version, filters and warnings.

    Raises ``UsageError`` if the filters do not apply, ``NotCaptured`` if there is no answer.
    """
    found = run(connection, path, plan(connection, registry.find(report), filters, CURRENT), 0)
    connection.execute("CREATE OR REPLACE TEMP TABLE export_answer AS FROM temp.answer")
    return found.answer


def of_view(connection: duckdb.DuckDBPyConnection, name: str, ground: Answer) -> Answer:
    """Return the rows of a temporary view with the comments on its columns, and the version, filters and warnings of
    the report."""
    comments = connection.execute(
        f"""SELECT column_name, comment FROM duckdb_columns()
            WHERE database_name = 'temp' AND table_name = {quoted(name)} AND comment IS NOT NULL"""
    ).fetchall()
    answer = from_sql(
        connection, f"FROM temp.{identifier(name)}", {str(column): str(text) for column, text in comments}
    )
    answer.report, answer.version, answer.database = ground.report, ground.version, ground.database
    answer.filters, answer.warnings, answer.notes = ground.filters, ground.warnings, ground.notes
    return answer
