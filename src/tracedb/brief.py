"""``tracedb brief``: one page of Markdown about a database, made of the answers of its reports."""

from __future__ import annotations

import io
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from tracedb.errors import NotCaptured
from tracedb.output.markdown_html import markdown_text, write_markdown
from tracedb.output.shorten import visible
from tracedb.report import registry
from tracedb.report import run as engine
from tracedb.report.query import plan

if TYPE_CHECKING:
    import duckdb

    from tracedb.report.filters import Filters
    from tracedb.report.run import Found

TABLES = {"configurations": 4, "gpu-timeline-average": 6, "top-kernels": 4}
"""Reports whose first rows stand on the page → how many of them."""
SAID = ("gemm-variance", "stragglers", "collective-overlap", "launch-latency")
"""Further reports, of which only what they say beside their rows is on the page."""
MOST_NOTES = 7
MOST_SAID = 12
"""Lines that the reports say, of which so many are notes; the rest is counted: the page stays below 60 lines."""
_NAMED = 5

_RECORDED = """
WITH chosen AS (FROM temp.selected_capture),
gpu AS (
    SELECT d.name, count(DISTINCT (d.capture_id, d.device_id)) AS devices FROM main.device AS d
    SEMI JOIN chosen AS c ON c.capture_id = d.capture_id
    SEMI JOIN main.kernel_event AS e ON e.capture_id = d.capture_id AND e.device_id = d.device_id
    GROUP BY d.name
),
label AS (SELECT unnest(map_entries(c.labels)) AS pair FROM chosen AS c),
setting AS (
    SELECT
        l.pair.key AS key,
        list(DISTINCT l.pair.value ORDER BY TRY_CAST(l.pair.value AS DOUBLE), l.pair.value) AS found
    FROM label AS l GROUP BY l.pair.key
)
SELECT
    (SELECT format('{:,}', count(*)) FROM chosen) AS captures,
    (SELECT string_agg(DISTINCT c.source, ', ' ORDER BY c.source) FROM chosen AS c) AS sources,
    (SELECT string_agg(n || ' ' || status, ', ' ORDER BY n DESC, status)
     FROM (SELECT status, count(*) AS n FROM chosen GROUP BY status)) AS states,
    (SELECT count(DISTINCT c.rank) FROM chosen AS c) AS ranks,
    (SELECT format('{:,}', count(*)) FROM main.kernel_event AS e SEMI JOIN chosen AS c ON c.capture_id = e.capture_id
     WHERE e.kind = 'kernel') AS kernels,
    (SELECT list(coalesce(g.name, 'unnamed') ORDER BY g.devices DESC, g.name) FROM gpu AS g) AS gpus,
    (SELECT list((s.key, s.found) ORDER BY s.key) FROM setting AS s) AS settings
"""


def page(connection: duckdb.DuckDBPyConnection, path: Path, filters: Filters, version: str) -> str:
    """Return the page: what was recorded, what the reports conclude and warn of, and their first rows.

    Raises ``UsageError`` or ``NotCaptured`` where the filters do not fit the database. A report that has no answer is
    named with the reason.
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
    """Return a text of the traces as one line that Markdown takes for text."""
    return markdown_text(" ".join(visible(text).split()))


def _recorded(connection: duckdb.DuckDBPyConnection) -> list[str]:
    ((captures, sources, states, ranks, kernels, gpus, settings),) = connection.execute(_RECORDED).fetchall()
    lines = [f"- captures: {captures} ({_safe(states or '')}), of {_safe(sources or 'no profiler')}"]
    lines.append(f"- ranks: {ranks or 'not known'}; kernels: {kernels if kernels != '0' else 'not captured'}")
    lines.append(f"- GPUs: {_listed(gpus or []) or 'not captured'}")
    for key, values in islice(settings or [], _NAMED):
        lines.append(f"- {_safe(key)}: {_listed(values)}")
    return lines


def _listed(values: list[str]) -> str:
    more = f" and {len(values) - _NAMED} more" if len(values) > _NAMED else ""
    return ", ".join(map(_safe, values[:_NAMED])) + more


def _conclusions(found: dict[str, Found], absent: dict[str, str]) -> list[str]:
    """Return a line for each note, for each warning once, and for each report without an answer, as far as they fit."""
    notes = [f"- {name}: {_safe(text)}" for name, answer in found.items() for text in answer.answer.notes]
    warnings = dict.fromkeys(text for answer in found.values() for text in answer.answer.warnings)
    others = [f"- **warning**: {_safe(text)}" for text in warnings]
    others += [f"- {name} has no answer: {_safe(reason)}" for name, reason in absent.items()]
    said = [*notes[:MOST_NOTES], *others][:MOST_SAID]
    left = len(notes) + len(others) - len(said)
    more = f"- and {left} more {'line' if left == 1 else 'lines'}; `tracedb report NAME` says all"
    return [*said, more] if left else said


def _table(name: str, found: Found) -> list[str]:
    title = registry.find(name).title
    text = io.StringIO()
    write_markdown(replace(found.answer, warnings=[], notes=[], left_out=""), text)  # they stand above all tables
    left = found.answer.left_out.partition(";")[0]
    more = f" ({left})" if left else ""
    return [f"### {name}: {title.rstrip('.')}{more}", "", *text.getvalue().splitlines()]
