"""``tracedb brief``: one page of Markdown for a chat or a ticket."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tracedb.cli.filter_options import filter_options
from tracedb.cli.options import database_option, output_option


@click.command()
@database_option
@filter_options
@output_option("Write to this file instead of stdout.")
@click.option("--version", default="v1", metavar="VN", help="View version. [default: v1]")
def brief(db: Path, out: Path | None, version: str, **chosen: Any) -> None:
    """Print one page of Markdown for a chat or a ticket.

    It has what was recorded, the conclusions and warnings of the reports, and the first rows of the main ones.
    """
    from tracedb import brief as made
    from tracedb.output import write_text
    from tracedb.report import run as engine
    from tracedb.report import shared_work
    from tracedb.report.filters import Filters
    from tracedb.storage import connection as database
    from tracedb.storage.interrupt import interruptible

    with (
        database.open_read_only(db) as connection,
        engine.explained(connection, db),
        interruptible(connection),
        shared_work.shared(),
    ):
        text = made.page(connection, db, Filters(**chosen), version)
    if out is None:
        click.echo(text, nl=False)
    else:
        write_text(text, out)
