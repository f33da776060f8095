"""Count things in the selected captures, for messages next to an answer or instead of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracedb.report import shared_work

if TYPE_CHECKING:
    import duckdb

SELECTED = "SEMI JOIN temp.selected_capture AS s ON s.capture_id = e.capture_id"
"""Appended after a table or view with alias ``e``."""


def row(connection: duckdb.DuckDBPyConnection, query: str) -> tuple[Any, ...]:
    """Return the single row of a query."""
    (found,) = shared_work.ask(connection, query)
    return found


def count(connection: duckdb.DuckDBPyConnection, source: str, condition: str = "true") -> int:
    """Return how many rows of a table or view ``e`` of the selected captures meet a condition."""
    return int(row(connection, f"SELECT count(*) FROM {source} AS e {SELECTED} WHERE {condition}")[0])


def number(count: int, noun: str) -> str:
    """Return a number with its noun in the singular or plural."""
    ending = "" if count == 1 else "es" if noun.endswith(("ch", "x")) else "s"
    return f"{count} {noun}{ending}"


def unread(connection: duckdb.DuckDBPyConnection) -> str:
    """Describe the GPU work that is in traces but in no table; empty if there is none."""
    events, names = row(
        connection,
        """SELECT sum(i.count)::BIGINT, string_agg(DISTINCT i.name, ', ' ORDER BY i.name) FROM (
               SELECT e.capture_id, e.count, split_part(e.code, ':', 2) AS name FROM main.ingest_issue AS e
               WHERE e.code LIKE 'device_events_not_read:%') AS i
           SEMI JOIN temp.selected_capture AS s ON s.capture_id = i.capture_id""",
    )
    return f"{number(events, 'device event')} of a category that tracedb does not read ({names})" if events else ""
