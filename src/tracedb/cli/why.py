"""``tracedb why``: one page of words about what holds the step back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tracedb.cli import report as reports
from tracedb.cli.filter_options import event_filter_options
from tracedb.cli.options import database_option, output_options, warn


@click.command()
@database_option
@event_filter_options
@click.option("--top", type=click.IntRange(1), default=5, metavar="N", help="Number of reasons. [default: 5]")
@output_options
@click.option("--version", default="v1", metavar="VN", help="View version. [default: v1]")
@click.pass_context
def why(
    ctx: click.Context,
    /,
    db: Path,
    top: int,
    format_name: str | None,
    out: Path | None,
    version: str,
    **chosen: Any,
) -> None:
    """Say what keeps the step from the hardware's peak: the five largest reasons, with evidence and what to try.

    The step time of every GPU is divided by reason, so shares add up and nothing counts twice. With --format or -o
    FILE.csv, .json, …, the rows of `tracedb report why` are written instead. Rules of your own go into the table
    why_rule.
    """
    if format_name is not None or (out is not None and out.suffix not in ("", ".txt")):
        options = {"names": ("why",), "db": db, "format_name": format_name, "out": out, "version": version}
        ctx.invoke(reports.report, **options, **chosen)
        return
    from tracedb.output import write_text
    from tracedb.report import registry, why_page
    from tracedb.report import run as engine
    from tracedb.report.filters import Filters
    from tracedb.report.query import plan
    from tracedb.storage import connection as database
    from tracedb.storage.interrupt import interruptible

    with database.open_read_only(db) as connection, engine.explained(connection, db), interruptible(connection):
        query = plan(connection, registry.find("why"), Filters(**chosen), version)
        found = engine.run(connection, db, query, 0)
        text = why_page.page(found, top)
    for caveat in found.answer.warnings:
        warn(caveat)
    if out is None:
        click.echo(text, nl=False)
    else:
        write_text(text, out)
