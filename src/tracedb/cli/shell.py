"""``tracedb shell``: the DuckDB shell on the file, or a small prompt of our own."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import click

from tracedb.cli.options import database_option, note


@click.command()
@click.option("--builtin", is_flag=True, help="Use the small prompt even where a DuckDB shell is installed.")
@database_option
def shell(db: Path, builtin: bool) -> None:
    """Open a read-only SQL prompt on the database.

    That is the DuckDB shell where `duckdb` is on the PATH (pip install duckdb-cli), else a small prompt: statements end
    with a semicolon, .tables lists what there is, .quit leaves.
    """
    from tracedb.cli import repl
    from tracedb.storage import connection as database
    from tracedb.storage.database_file import absolute

    program = None if builtin else shutil.which("duckdb")
    with database.open_read_only(db) as connection:
        if program is None:
            note("a small prompt: end a statement with ; and leave with .quit (pip install duckdb-cli has more)")
            repl.converse(connection)
            return
    os.execv(program, ["duckdb", "-readonly", str(absolute(db))])
