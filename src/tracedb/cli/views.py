"""``tracedb views``: the views in the file, with version, columns and units."""

from __future__ import annotations

from pathlib import Path

import click

from tracedb.cli import completion_candidates
from tracedb.cli.options import database_option, note, output_options


@click.group(invoke_without_command=True)
@database_option
@output_options
@click.pass_context
def views(ctx: click.Context, db: Path, format_name: str | None, out: Path | None) -> None:
    """List, show and verify the views.

    Without a command, list version, name, grain and meaning of each view. Without a database, list the shipped views.
    """
    ctx.obj.db = db
    if ctx.invoked_subcommand is not None:
        return
    from tracedb.catalog import describe
    from tracedb.output import choose_format, write

    form = choose_format(format_name, out)
    with describe.opened(db) as (connection, is_file):
        answer = describe.list_views(connection)
    answer.report, answer.database = "views", str(db) if is_file else None
    _say_shipped(db, is_file)
    write(answer, form, out)


def _say_shipped(db: Path, is_file: bool) -> None:
    if not is_file:
        note(f"{db} does not exist; these are the views that tracedb ships")


@views.command()
@click.argument("name", shell_complete=completion_candidates.relations)
@database_option
@output_options
def show(name: str, db: Path, format_name: str | None, out: Path | None) -> None:
    """Show one view: meaning, columns with type and unit, SQL.

    NAME is v1.top_kernels, top_kernels or top-kernels. Formats other than table have the columns only.
    """
    from tracedb.catalog import describe
    from tracedb.output import choose_format, write

    form = choose_format(format_name, out)
    view = describe.find_view(name)
    with describe.opened(db) as (connection, is_file):
        answer = describe.list_columns(connection, view.version, view.name)
        said = describe.comment(connection, view)
    answer.report, answer.version = "views show", view.version
    answer.database, answer.filters = str(db) if is_file else None, {"view": view.name}
    _say_shipped(db, is_file)
    if form != "table" or out is not None:
        write(answer, form, out)
        return
    click.echo(f"{view.version}.{view.name}\n{said}\n")
    write(answer, form, out)
    click.echo(f"\n{view.text.rstrip()}")


@views.command()
@database_option
@output_options
def verify(db: Path, format_name: str | None, out: Path | None) -> None:
    """Compare the views in the file with the shipped ones.

    Exit code 1 if any differs.
    """
    from tracedb.catalog import describe
    from tracedb.errors import TracedbError
    from tracedb.output import choose_format, write
    from tracedb.storage.connection import open_read_only

    form = choose_format(format_name, out)
    with open_read_only(db) as connection:
        answer = describe.verify(connection)
    answer.report, answer.database = "views verify", str(db)
    rows = list(answer.rows)
    answer.rows = rows
    write(answer, form, out)
    wrong = [f"{row[0]}.{row[1]} ({row[2]})" for row in rows if row[2] != "ok"]
    if wrong:
        name = next((row[1] for row in rows if row[2] == describe.SHORT_NAME_REPLACED), None)
        mend = f"; `CREATE OR REPLACE VIEW main.{name} AS FROM v1.{name}` in the DuckDB shell restores a short name"
        raise TracedbError(
            f"{db}: {len(wrong)} of {len(rows)} views differ from the shipped ones: {', '.join(wrong)}"
            + (mend if name else "")
        )
