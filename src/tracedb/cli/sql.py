"""``tracedb sql``: one SELECT of the user's own."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from tracedb.cli.filter_options import capture_option
from tracedb.cli.options import database_option, note, output_options, rows_shown, top_option, warn


@click.command()
@click.argument("query")
@database_option
@output_options
@top_option
@click.option("--wide", is_flag=True, help="Show every column and whole texts, however wide a table gets.")
@click.option(
    "--as",
    "dialect",
    type=click.Choice(["nsys"]),
    help="Provide nsys's tables (CUPTI_ACTIVITY_KIND_KERNEL …) and accept SQLite's SQL.",
)
@capture_option("With --as, only this capture")
def sql(
    query: str,
    db: Path,
    dialect: str | None,
    captures: tuple[str, ...],
    format_name: str | None,
    out: Path | None,
    top: int | None,
    wide: bool,
) -> None:
    """Run one SELECT, read-only.

    QUERY is the SQL, or - to read it from stdin. It can read the database only: no other files, no network, no
    settings. Views have a versioned name (v1.top_kernels) and a short one (top_kernels). Variables may be set first:
    SET VARIABLE step_range = 'iter*'; FROM gpu_timeline.
    """
    from tracedb.catalog import nsys_tables, user_sql
    from tracedb.output import choose_format, write
    from tracedb.report.captures import numbers
    from tracedb.storage import connection as database
    from tracedb.storage.interrupt import interruptible

    if captures and not dialect:
        raise click.UsageError("--capture needs --as nsys; without it, write WHERE capture_id = … in the query")
    form = choose_format(format_name, out)
    text = sys.stdin.read() if query == "-" else query
    settings = nsys_tables.SETTINGS if dialect else None
    with database.open_read_only(db, None, settings) as connection, user_sql.explained(), interruptible(connection):
        if dialect:
            nsys_tables.install(connection, numbers(connection, captures))
            if (count := nsys_tables.pooled(connection)) > 1 and "captureid" not in text.lower():
                warn(nsys_tables.pooled_warning(count))
            text = nsys_tables.translated(text)
        answer = user_sql.run(connection, text)
        answer.database, answer.is_wide = str(db), wide
        most = rows_shown(form, top)
        if most and user_sql.limited(answer, most):
            note(f"the first {most} rows; --top 0 shows all")
        left = write(answer, form, out)
    if left:
        note(f"{left} of {len(answer.columns)} columns did not fit; --format csv shows all")
