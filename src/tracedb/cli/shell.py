"""``tracedb shell``: the DuckDB shell on the file, or a small prompt of our own."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import click

from tracedb.cli.options import database_option, note


@click.command()
@click.option("--builtin", is_flag=True, help="Use the small prompt even where a DuckDB shell is installed.")
@click.option(
    "--as",
    "dialect",
    type=click.Choice(["nsys"]),
    help="Have nsys's tables (CUPTI_ACTIVITY_KIND_KERNEL …), and whole division as SQLite does.",
)
@database_option
def shell(db: Path, builtin: bool, dialect: str | None) -> None:
    """Open a read-only SQL prompt on the database.

    That is the DuckDB shell where `duckdb` is on the PATH (pip install duckdb-cli), else a small prompt: statements end
    with a semicolon, .tables lists what there is, .quit leaves.
    """
    from tracedb.catalog import nsys_tables
    from tracedb.cli import repl
    from tracedb.storage import connection as database
    from tracedb.storage.database_file import absolute

    program = None if builtin else shutil.which("duckdb")
    with database.open_read_only(db, None, nsys_tables.SETTINGS if dialect else None) as connection:
        if dialect:
            nsys_tables.install(connection)
        if program is None:
            note("a small prompt: end a statement with ; and leave with .quit (pip install duckdb-cli has more)")
            repl.converse(connection)
            return
    made = ["-cmd", f"SET integer_division = true; {nsys_tables.statements()}"] if dialect else []
    os.execv(program, ["duckdb", "-readonly", *made, str(absolute(db))])
