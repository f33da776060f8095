"""``tracedb doctor``: what is installed, and what the captures can answer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tracedb.cli.options import database_option, note, output_options

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tracedb.output import Answer


@click.command()
@database_option
@output_options
def doctor(db: Path, format_name: str | None, out: Path | None) -> None:
    """Show what is installed, what the database is, and what its captures can and cannot answer.

    The table groups captures with the same contents; other formats have a row with counts for each capture. Only JSON
    also has the facts about the installation and the database.
    """
    from tracedb.catalog import doctor as facts
    from tracedb.output import choose_format, write

    form = choose_format(format_name, out)
    found = facts.examine(db)
    if not found.about["file"]["exists"]:
        note(f"{db} does not exist; `tracedb ingest PATH --db {db}` makes it")
    if form == "table" and out is None:
        parts = [("what the captures hold", found.abilities), ("what ingest noted", found.issues)]
        _print(found.about, [] if found.busy else parts)  # of a file in use nothing is known
    else:
        write(found.captures, form, out)
    if found.busy:
        raise found.busy


def _print(about: Mapping[str, Mapping[str, object]], parts: list[tuple[str, Answer]]) -> None:
    from tracedb.output import write

    for title, facts in about.items():
        click.echo(title)
        for name, value in facts.items():
            click.echo(f"  {name:<16} {_word(value)}")
        click.echo()
    for title, answer in parts:
        if not answer.rows:
            click.echo(f"{title}: nothing\n")
            continue
        click.echo(f"{title}\n")
        write(answer, "table", None)
        click.echo()


def _word(value: object) -> str:
    from tracedb.output.shorten import visible

    if value is None:
        return "not installed"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else visible(str(value))
