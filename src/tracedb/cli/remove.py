"""``tracedb remove``: remove captures from a database."""

from __future__ import annotations

from pathlib import Path

import click

from tracedb.cli.options import counted, database_option, note, output_options


@click.command()
@click.argument("meant", nargs=-1, required=True, metavar="CAPTURE…")
@database_option
@output_options
def remove(meant: tuple[str, ...], db: Path, format_name: str | None, out: Path | None) -> None:
    """Remove captures and every row that belongs to them, in one transaction.

    CAPTURE is a number, a unique part of a path, or a pattern, as for --capture. The ingested files are not touched and
    can be ingested again. Clocks of the remaining captures are aligned again.
    """
    from tracedb.cli.label import account
    from tracedb.output import choose_format, write
    from tracedb.pipeline import capture_edit
    from tracedb.report import captures
    from tracedb.storage.connection import open_read_only

    form = choose_format(format_name, out)
    with open_read_only(db) as connection:
        names = captures.told_apart(captures.paths(connection))
    removed = capture_edit.remove(db, lambda connection: captures.numbers(connection, meant, "remove"))
    rows = sum(item.rows for item in removed)
    note(f"{counted(len(removed), 'capture')} and {counted(rows, 'row')} of other tables removed from {db}")
    write(account(removed, "remove", db, names, with_rows=True), form, out)
