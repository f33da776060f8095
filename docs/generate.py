"""Generate what the documentation repeats of the code: ``docs/tables.md``, ``docs/views.md`` and lists in other pages.

``python docs/generate.py`` writes; ``--check`` says whether all of it is up to date (exit code 1 if not). What README's
commands print is written by ``docs/console.py``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tracedb.catalog import describe
from tracedb.output import about
from tracedb.report import registry
from tracedb.storage import schema, template_database, views

if TYPE_CHECKING:
    import duckdb

HERE = Path(__file__).resolve().parent
README = HERE.parent / "README.md"
FROM_NSYS = HERE / "from-nsys-stats.md"
OTHER_NAMES = HERE / "other-names.md"
NSYS_TOPIC = "nsys_stats"
LIST = re.compile(r"(<!-- reports: [^\n]* -->\n).*?(<!-- end -->)", re.DOTALL)
"""Markers around a generated list of reports in a hand-written page."""
MADE = "<!-- Made by docs/generate.py from the comments in {}. Do not edit. -->"
HEAD = ("| column | type | unit | meaning |", "|---|---|---|---|")


def tables(connection: duckdb.DuckDBPyConnection) -> Iterator[str]:
    """Yield the lines of the page about tables."""
    yield from ("# Tables", "", MADE.format("schemas/v1"), "")
    yield "The recorded facts (schema `main`, version 1). `tracedb schema TABLE` prints the same descriptions."
    yield "What a source does not record is NULL, never 0."
    for name, comment in schema.tables(connection):
        yield from ("", f"## {name}", "", comment, "", *HEAD)
        yield from columns(connection, "main", name)


def views_page(connection: duckdb.DuckDBPyConnection) -> Iterator[str]:
    """Yield the lines of the page about views."""
    yield from ("# Views", "", MADE.format("sql/v1"), "")
    yield "The answers, as SQL over the tables. Use the versioned name `v1.NAME` in code; at a prompt, `NAME` alone is"
    yield "the newest version. `tracedb views show NAME` prints the same descriptions with the SQL."
    yield "Only `kernels` lists events with a `time_fault`; all other views exclude them, and such calls and ranges too"
    yield "([impossible times](ingest.md#impossible-times))."
    reports = {report.view: report.name for report in registry.every()}
    for version in views.VERSIONS:
        public = [view for view in views.shipped(version) if not view.is_private]
        order = [*reports, *sorted(view.name for view in public)]
        for view in sorted(public, key=lambda view: order.index(view.name)):
            yield from ("", f"## `{view.version}.{view.name}`", "", describe.comment(connection, view))
            if view.name in reports:
                yield from ("", f"Printed by `tracedb report {reports[view.name]}`.")
            yield from ("", *HEAD)
            yield from columns(connection, view.version, view.name)


def columns(connection: duckdb.DuckDBPyConnection, schema_name: str, name: str) -> Iterator[str]:
    """Yield a line for each column of a table or view."""
    for column in schema.columns(connection, schema_name, name):
        item = about(*column)
        meaning = (item.description or "").replace("|", "\\|")
        yield f"| `{item.name}` | {item.type} | {item.unit or ''} | {meaning} |"


def reports() -> Iterator[str]:
    """Yield README's table of reports; those of nsys stats are in a page of their own."""
    yield from ("| `tracedb report …` | shows |", "|---|---|")
    for report in registry.every():
        if views.View(views.CURRENT, report.view).topic != NSYS_TOPIC:
            yield f"| `{report.name}` | {report.title} |"


def reports_of_nsys() -> Iterator[str]:
    """Yield the table of the reports that correspond to one of ``nsys stats``."""
    yield from ("| `nsys stats --report` | the same in tracedb | more |", "|---|---|---|")
    names = {report.name for report in registry.every()}
    for report in registry.every():
        if views.View(views.CURRENT, report.view).topic == NSYS_TOPIC:
            more = ", ".join(f"`{name}`" if name in names else f"table `{name}`" for name in report.see)
            yield f"| `{report.view}` | `tracedb report {report.view}` | {more} |"


def other_names() -> Iterator[str]:
    """Yield the table of names that other tools have for what a report answers."""
    yield from ("| tool | name there | `tracedb report …` |", "|---|---|---|")
    found: dict[tuple[str, str], list[str]] = {}
    for report in registry.every():
        for tool, names in report.peers.items():
            for name in names if tool != "words" else ():
                found.setdefault((tool, name), []).append(report.name)
    same: dict[tuple[str, str], list[str]] = {}
    for (tool, name), reports_of_it in sorted(found.items(), key=lambda item: (item[0][0].lower(), item[0][1])):
        same.setdefault((tool, ", ".join(f"`{each}`" for each in reports_of_it)), []).append(f"`{name}`")
    for (tool, listed), called in same.items():
        yield f"| {tool} | {', '.join(called)} | {listed} |"


def with_list(page: Path, lines: Iterator[str]) -> str:
    """Return the text of a page with a new list between its markers."""
    made = "\n".join(lines)
    text, places = LIST.subn(lambda match: f"{match[1]}\n{made}\n\n{match[2]}", page.read_text(encoding="utf-8"))
    if places != 1:
        raise AssertionError(f"{page.name} holds {places} lists of reports, not 1")
    return text


def pages() -> dict[Path, str]:
    """Return the text of each page with generated parts."""
    with template_database.opened() as connection:
        made = {"tables.md": tables(connection), "views.md": views_page(connection)}
        whole = {HERE / name: "\n".join(lines) + "\n" for name, lines in made.items()}
    listed = {README: reports(), FROM_NSYS: reports_of_nsys(), OTHER_NAMES: other_names()}
    return {**whole, **{page: with_list(page, lines) for page, lines in listed.items()}}


def stale() -> list[Path]:
    """Return the pages that differ from what would be generated now."""
    return [path for path, text in pages().items() if not path.exists() or path.read_text(encoding="utf-8") != text]


def main() -> int:
    """Write the pages and lists, or check them."""
    if "--check" in sys.argv[1:]:
        old = stale()
        for path in old:
            print(f"{path.relative_to(HERE.parent)} is out of date: run `make docs`", file=sys.stderr)
        return 1 if old else 0
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
