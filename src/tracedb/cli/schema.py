"""``tracedb schema``: the tables and their columns."""

from __future__ import annotations

from pathlib import Path

import click

from tracedb.cli import completion_candidates
from tracedb.cli.options import database_option, note, output_options


@click.command()
@click.argument("table", required=False, shell_complete=completion_candidates.relations)
@database_option
@output_options
def schema(table: str | None, db: Path, format_name: str | None, out: Path | None) -> None:
    """List the tables, or the columns of one table or view with type, unit and meaning."""
    from tracedb.catalog import describe
    from tracedb.output import choose_format, write

    form = choose_format(format_name, out)
    with describe.opened(db) as (connection, is_file):
        if table is None:
            answer = describe.list_tables(connection)
        else:
            answer = describe.list_columns(connection, *describe.find_table(connection, table))
    answer.report, answer.database = "schema", str(db) if is_file else None
    answer.filters = {"table": table} if table else None
    if not is_file:
        note(f"{db} does not exist; this is the schema that tracedb ships")
    write(answer, form, out)
