"""The section of a page about its captures: their devices and status, and what ingest noted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracedb.output import Answer, Show, from_sql
from tracedb.page.contents import Section
from tracedb.page.tables import table
from tracedb.report import captures, selection
from tracedb.storage import resources

if TYPE_CHECKING:
    import duckdb

    from tracedb.report.filters import Scope

_CAPTURE = {
    "capture_id": "Number of the capture in the database, and the unique part of its path.",
    "source": "Ingester that read it.",
    "rank": "Rank: from the trace, else from path or file name.",
    "labels": "Labels from the path or given at ingest.",
    "devices": "Names of the GPUs that it used.",
    "status": "complete, truncated (the file was cut), repaired (events were mended or lost), no_gpu_activity.",
    "kernels": "Number of kernels. [count]",
    "copies": "Number of copies and memsets. [count]",
    "span_ns": "From the start of the first GPU event to the end of the last. [ns]",
    "events_read": "Events in the files: those that gave a row plus those that were skipped. [count]",
    "events_skipped": "Events that gave no row. [count]",
    "warnings": "Events that a warning of ingest is about. [count]",
}
_ISSUE = {
    "severity": "note: skipped by design; warning: the file is faulty.",
    "code": "What happened; docs/issue-codes.md describes each code.",
    "events": "How many events it concerns. [count]",
    "skipped": "How many of them gave no row. [count]",
    "captures": "Number of captures that it concerns. [count]",
    "example": "What was found in one of them, where, and what was done.",
}


def section(connection: duckdb.DuckDBPyConnection, scope: Scope) -> Section:
    """Return the tables of the captures in ``temp.selected_capture`` and of what ingest noted about them."""
    names = captures.told_apart(captures.paths(connection))
    words = {str(number): f"{number} {name}".rstrip() for number, name in names.items()}
    held = _answer(connection, "captures", _CAPTURE)
    held.shows = [
        Show(("capture_id",), "capture", "text", words=words),
        *(Show((name,)) for name in list(_CAPTURE)[1:]),
    ]
    tables = [table(held, "Captures")]
    issues = _answer(connection, "issues", _ISSUE)
    issues.rows = list(issues.rows)
    if issues.rows:
        tables.append(table(issues, "What ingest noted"))
    sql = [selection.statement(scope.filters), *(_text(name) for name in ("captures", "issues"))]
    return Section("recorded", "What was recorded", sql="\n".join(text + ";" for text in sql), tables=tables)


def _text(name: str) -> str:
    return resources.text("sql", "page", f"{name}.sql").rstrip()


def _answer(connection: duckdb.DuckDBPyConnection, name: str, meanings: dict[str, str]) -> Answer:
    answer = from_sql(connection, _text(name), meanings)
    answer.shows = [Show((column,)) for column in meanings]
    return answer
