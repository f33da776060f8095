"""``tracedb page``: the contents of a database as one HTML page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tracedb.cli.filter_options import attention_option, filter_options
from tracedb.cli.options import database_option, detail, note, output_option

if TYPE_CHECKING:
    from tracedb.page.contents import Page
    from tracedb.report.filters import Filters

ROWS = 100


@click.command()
@click.argument("names", nargs=-1, metavar="[REPORT…]")
@database_option
@filter_options
@attention_option
@click.option(
    "--top",
    type=click.IntRange(min=1),
    default=ROWS,
    metavar="N",
    help=f"Rows of each table. [default: {ROWS}]",
)
@click.option(
    "--compare",
    "sides",
    multiple=True,
    metavar="A B…",
    help="Compare the other sides with A, as `tracedb compare A B…` does.",
)
@output_option("The page: FILE.html, which needs no network and no other file.")
@click.option("--version", default="v1", metavar="VN", help="View version. [default: v1]")
def page(
    names: tuple[str, ...],
    db: Path,
    top: int,
    sides: tuple[str, ...],
    out: Path | None,
    version: str,
    **chosen: Any,
) -> None:
    """Write one HTML page: what was recorded, conclusions, pictures, tables, and the SQL of each.

    REPORT…: only these reports; by default all that have an answer. Filters work as in `tracedb report`. Pictures need
    the extra `plot`.
    """
    from tracedb.output.destination import refuse_overwriting
    from tracedb.output.write import write_text
    from tracedb.page import render
    from tracedb.report.capture_counts import number
    from tracedb.report.filters import Filters

    if out is None:
        raise click.UsageError("name the page's file with -o FILE.html")
    if out.suffix.lower() not in (".html", ".htm"):
        raise click.UsageError(f"{out}: a page is HTML; name it FILE.html")
    if sides:
        names, sides = _apart(names, sides)
    if sides and not db.exists() and Path(sides[0]).is_file():
        db = Path(sides[0])  # the page is about the baseline where no database is named
    render.require()
    refuse_overwriting(out, db, [Path(side) for side in sides])
    made = _built(names, db, Filters(**chosen), version, top, sides)
    write_text(render.html(made), out)
    if made.pictures:
        note(f"without pictures: {made.pictures}")
    figures = sum(len(item.figures) for item in made.sections)
    note(f"{number(len(made.sections), 'report')}, {number(figures, 'picture')}: {out}")


def _apart(words: tuple[str, ...], sides: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of reports and the sides. Of ``--compare A B``, click passes B as an argument."""
    from tracedb.report import registry

    known = {name for report in registry.every() for name in (report.name, *report.also)}
    reports = tuple(word for word in words if word.replace("_", "-") in known)
    return reports, (*sides, *(word for word in words if word not in reports))


def _built(names: tuple[str, ...], db: Path, filters: Filters, version: str, top: int, sides: tuple[str, ...]) -> Page:
    from tracedb import compare
    from tracedb.page import comparison_section
    from tracedb.page.build import build, chosen_reports
    from tracedb.report import run as engine
    from tracedb.report import shared_work
    from tracedb.storage import connection as database
    from tracedb.storage.interrupt import interruptible

    reports = chosen_reports(names)
    if sides and not filters.on_captures:  # the whole page is about the sides, not about what else the database holds
        filters = replace(filters, captures=compare.chosen([compare.side(text, db) for text in sides], db))
    with (
        database.open_read_only(db) as connection,
        engine.explained(connection, db),
        interruptible(connection),
        shared_work.shared(),
    ):
        engine.require_views(connection, db)
        made = build(connection, db, reports, filters, version, top, detail)
    if sides:
        steps = compare.Steps(filters.skip_warmup, filters.step_range)
        made.comparison = comparison_section.section(sides, db, steps, top)
        made.comparison.figures = comparison_section.pictures(made.sections)
    return made
