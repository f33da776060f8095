"""``tracedb brief``: one page of Markdown about a database, made from the answers of its reports."""

from __future__ import annotations

import io
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from tracedb.errors import NotCaptured
from tracedb.output.markdown_html import markdown_text, write_markdown
from tracedb.output.shorten import visible
from tracedb.report import captures, registry
from tracedb.report import run as engine
from tracedb.report.query import plan

if TYPE_CHECKING:
    import duckdb

    from tracedb.report.filters import Filters
    from tracedb.report.run import Found

TABLES = {"configurations": 4, "gpu-timeline-average": 6, "top-kernels": 4}
"""Reports whose first rows are on the page → number of rows."""
SAID = ("gemm-variance", "stragglers", "collective-overlap", "launch-latency")
"""Further reports, of which only the conclusions and warnings are on the page."""
RANKING = "configurations"
"""Report that calls one row the best."""
MOST_NOTES = 7
MOST_SAID = 12
"""Most lines from the reports, and most notes among them; omitted lines are counted. This keeps the page below 60
lines."""
MOST_LABELS = 5


def page(connection: duckdb.DuckDBPyConnection, path: Path, filters: Filters, version: str) -> str:
    """Return the page: what was recorded, the conclusions and warnings of the reports, and their first rows.

    Raises ``UsageError`` or ``NotCaptured`` if the filters do not apply to the database. A report without an answer is
    listed with the reason.
    """
    found, absent = {}, {}
    recorded: list[str] = []
    for name in (*TABLES, *SAID):
        definition = registry.find(name)
        query = plan(connection, definition, filters, version)
        recorded = recorded or _recorded(connection)
        try:
            answer = engine.run(connection, path, query, TABLES.get(name, 1))
            answer.answer.rows = list(islice(answer.answer.rows, TABLES.get(name, 0)))
            found[name] = answer
        except NotCaptured as error:
            absent[name] = str(error)
    lines = [f"# {_safe(path.name)}", "", *recorded, "", "## What the reports say", ""]
    lines += _conclusions(found, absent) or ["- nothing beyond the tables below"]
    for name in TABLES:
        if name in found:
            lines += ["", *_table(name, found[name])]
    lines += ["", f"Views {version}; `tracedb report NAME` prints the whole of each table."]
    return "\n".join(lines) + "\n"


def _safe(text: str) -> str:
    """Return text from the traces as one line of Markdown without syntax."""
    return markdown_text(" ".join(visible(text).split()))


def _recorded(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Return a line for each fact about the captures, with a few of the labels."""
    lines, labels = [], 0
    for fact, value in captures.facts(connection):
        labels += fact.startswith("label ")
        if not fact.startswith("label ") or labels <= MOST_LABELS:
            key = fact.removeprefix("label ")
            named = _safe(fact) if key == fact else f"label {_safe(key)}"
            lines.append(f"- {named}: {'not captured' if value is None else _safe(value)}")
    if labels > MOST_LABELS:
        more = labels - MOST_LABELS
        lines.append(f"- and {more} more {'label' if more == 1 else 'labels'}")
    return lines


def _conclusions(found: dict[str, Found], absent: dict[str, str]) -> list[str]:
    """Return a line for each note, each distinct warning, and each report without an answer, as far as they fit.

    What is wrong with a comparison of configurations stands before the one that it calls best.
    """
    notes = [f"- {name}: {_safe(text)}" for name, answer in found.items() for text in answer.answer.notes]
    warnings = dict.fromkeys(text for answer in found.values() for text in answer.answer.warnings)
    of_ranking = found[RANKING].answer.warnings if RANKING in found else []
    first, later = (
        [_warning(text) for text in warnings if (text in of_ranking) is is_first] for is_first in (True, False)
    )
    others = [*later, *(f"- {name} has no answer: {_safe(reason)}" for name, reason in absent.items())]
    said = [*first, *notes[:MOST_NOTES], *others][:MOST_SAID]
    left = len(first) + len(notes) + len(others) - len(said)
    more = f"- and {left} more {'line' if left == 1 else 'lines'}; `tracedb report NAME` says all"
    return [*said, more] if left else said


def _warning(text: str) -> str:
    return f"- **warning**: {_safe(text)}"


def _table(name: str, found: Found) -> list[str]:
    title = registry.find(name).title
    text = io.StringIO()
    write_markdown(replace(found.answer, warnings=[], notes=[], left_out=""), text)  # printed above all tables
    left = found.answer.left_out.partition(";")[0]
    more = f" ({left})" if left else ""
    return [f"### {name}: {title.rstrip('.')}{more}", "", *text.getvalue().splitlines()]
