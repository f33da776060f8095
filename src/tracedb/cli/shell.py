"""``tracedb shell``: the DuckDB shell on the file, or a built-in prompt."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import click

from tracedb.cli.options import database_option, note


@click.command()
@click.option("--builtin", is_flag=True, help="Use the built-in prompt even if a DuckDB shell is installed.")
@click.option(
    "--as",
    "dialect",
    type=click.Choice(["nsys"]),
    help="Provide nsys's tables (CUPTI_ACTIVITY_KIND_KERNEL …) and SQLite's integer division.",
)
@database_option
def shell(db: Path, builtin: bool, dialect: str | None) -> None:
    """Open a read-only SQL prompt on the database.

    This is the DuckDB shell if `duckdb` is on the PATH (pip install duckdb-cli), else a built-in prompt: statements end
    with a semicolon, .tables lists tables and views, .quit exits.
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
            note("the built-in prompt: end a statement with ; and exit with .quit (pip install duckdb-cli: more)")
            repl.converse(connection)
            return
    made = ["-cmd", f"SET integer_division = true; {nsys_tables.statements()}"] if dialect else []
    os.execv(program, ["duckdb", "-readonly", *made, str(absolute(db))])
