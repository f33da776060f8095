"""Folded stacks for flame graphs and speedscope (``sql/export/stacks.sql``)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tracedb.export import answers, queries

if TYPE_CHECKING:
    import duckdb

    from tracedb.report.filters import Filters


def text(connection: duckdb.DuckDBPyConnection, db: Path, filters: Filters) -> tuple[str, list[str]]:
    """Return the lines, and the warnings of the report.

    Raises ``NotCaptured`` if no Python frames are around launches, ``UsageError`` if filters do not apply.
    """
    ground = answers.take(connection, db, "kernel-stacks", filters)
    connection.execute(queries.text("stacks"))
    return "".join(f"{row[0]}\n" for row in queries.rows(connection)), list(ground.warnings)
