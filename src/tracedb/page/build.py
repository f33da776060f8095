"""Collect the contents of a page: every report that has an answer, in the order of the registry, with its pictures."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import tracedb
from tracedb.errors import NotCaptured, UsageError
from tracedb.output.shorten import visible
from tracedb.page import captures_section, pictures
from tracedb.page.contents import Missing, Page, Section
from tracedb.page.tables import table
from tracedb.report import captures, registry, selection
from tracedb.report import run as engine
from tracedb.report.filters import described
from tracedb.report.query import plan

if TYPE_CHECKING:
    import duckdb

    from tracedb.report.definition import Report
    from tracedb.report.filters import Filters

Tell = Callable[[str], None]


def build(
    connection: duckdb.DuckDBPyConnection,
    path: Path,
    reports: Sequence[Report],
    filters: Filters,
    version: str,
    top: int,
    tell: Tell,
) -> Page:
    """Run the reports and draw their pictures. ``top``: rows of a table; ``tell`` gets the name of each report.

    Raises ``NotCaptured`` if the filters match no capture, ``UsageError`` if they name something that does not exist.
    """
    scope = selection.select(connection, filters, version, False, None)
    if not scope.captures:
        raise NotCaptured(f"{path}: holds no captures; load some with `tracedb ingest PATH --db {path}`")
    facts = [(visible(name), value and visible(value)) for name, value in captures.facts(connection)]
    first = captures_section.section(connection, scope)
    options = _options(filters, path)
    sections: list[Section] = []
    reasons: dict[str, list[str]] = {}
    drawing = pictures.absent()
    for report in reports:
        tell(report.name)
        try:
            section, ran = _section(connection, path, report, filters, version, top)
        except (NotCaptured, UsageError) as error:
            reasons.setdefault(visible(str(error)), []).append(report.name)
            continue
        section.command = f"tracedb report {report.name}{options}"
        if not drawing:
            _illustrate(connection, path, section, ran, filters, options, reasons)
        sections.append(section)
    missing = [Missing(names, reason) for reason, names in reasons.items()]
    page = Page(f"Traces in {visible(path.name)}", facts, first, sections, missing)
    page.chosen = visible(described(filters)) if filters.on_captures else ""
    page.version = f"tracedb {tracedb.__version__}, views {version}"
    page.pictures = drawing
    return page


def _section(
    connection: duckdb.DuckDBPyConnection, path: Path, report: Report, filters: Filters, version: str, top: int
) -> tuple[Section, pictures.Ran]:
    query = plan(connection, report, filters, version)
    found = engine.run(connection, path, query, top)
    section = Section(report.name, report.title, sql=query.text(top) + ";", is_of_peer=bool(report.see))
    section.gist = [visible(text) for text in found.gist]
    everything = f"tracedb report {report.name} --top 0 shows all"  # a page itself takes no --top 0
    notes = [text.replace("--top 0 shows all", everything) for text in found.notes[len(found.gist) :]]
    section.notes = [visible(text) for text in notes]
    section.warnings = [visible(text) for text in found.answer.warnings]
    section.tables = [table(found.answer, report.title)]
    return section, pictures.Ran(query, found.answer)


def _illustrate(
    connection: duckdb.DuckDBPyConnection,
    path: Path,
    section: Section,
    ran: pictures.Ran,
    filters: Filters,
    options: str,
    reasons: dict[str, list[str]],
) -> None:
    """Draw the pictures of a report; for those without data the reason is added to ``reasons``."""
    for picture in pictures.of_report(section.name):
        asked = filters if picture.by else replace(filters, by=())
        drawn = pictures.figure(connection, path, picture, ran, asked, options)
        if isinstance(drawn, str):
            reasons.setdefault(visible(drawn), []).append(f"picture {picture.name}")
        else:
            section.figures.append(drawn)


def _options(filters: Filters, path: Path) -> str:
    """Return the filters and the database as command-line options."""
    lists: list[tuple[str, Sequence[object]]] = [
        ("--rank", filters.ranks),
        ("--device", filters.devices),
        ("--source", filters.sources),
        ("--capture", filters.captures),
        ("--where", [f"{key}={value}" for key, values in filters.where.items() for value in values]),
        ("--path", filters.paths),
        ("--class", filters.classes),
        ("--range", filters.range),
        ("--by", filters.by),
    ]
    words = [word for option, values in lists for value in values for word in (option, str(value))]
    for option, text in (("--rule", filters.rule), ("--step-range", filters.step_range)):
        words += [] if text is None else [option, text]
    words += ["--skip-warmup", str(filters.skip_warmup)] if filters.skip_warmup else []
    words += ["--counted"] if filters.counted else []
    words += ["--attention-as-matmul"] if filters.attention_as_matmul else []
    return " " + visible(" ".join(map(shlex.quote, [*words, "--db", path.name])))


def chosen_reports(names: Sequence[str]) -> Sequence[Report]:
    """Return the reports of these names, or all of them. Raises ``UsageError``."""
    return [registry.find(name) for name in dict.fromkeys(names)] or registry.every()
