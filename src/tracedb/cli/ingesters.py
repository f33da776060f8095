"""``tracedb ingesters``: which sources are installed."""

from __future__ import annotations

from pathlib import Path

import click

from tracedb.cli.options import output_options


@click.command()
@output_options
def ingesters(format_name: str | None, out: Path | None) -> None:
    """List the installed ingesters with distribution and version, without importing any."""
    from tracedb.ingester import registered
    from tracedb.output import Column, choose_format, from_rows, write

    form = choose_format(format_name, out)
    columns = [
        Column("name", "VARCHAR", None, "Name, for --ingester and capture.source."),
        Column("distribution", "VARCHAR", None, "Package that provides it."),
        Column("version", "VARCHAR", None, "Version of that package."),
    ]
    answer = from_rows(columns, [(item.name, item.distribution, item.version) for item in registered()])
    answer.report = "ingesters"
    write(answer, form, out)
