"""``tracedb shell``: the DuckDB shell on the file, or a built-in prompt."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import click

from tracedb.cli.filter_options import capture_option
from tracedb.cli.options import database_option, note, warn
from tracedb.storage.lake_store import is_lake, is_remote


@click.command()
@click.option("--builtin", is_flag=True, help="Use the built-in prompt even if a DuckDB shell is installed.")
@click.option(
    "--as",
    "dialect",
    type=click.Choice(["nsys"]),
    help="Provide nsys's tables (CUPTI_ACTIVITY_KIND_KERNEL …) and SQLite's integer division.",
)
@click.option("-ui", "is_ui", is_flag=True, help="Open DuckDB's UI in the browser, if its extension is installed.")
@capture_option("With --as, only this capture")
@database_option
def shell(db: Path, builtin: bool, dialect: str | None, captures: tuple[str, ...], is_ui: bool) -> None:
    """Open a read-only SQL prompt on the database.

    This is the DuckDB shell if `duckdb` is on the PATH (pip install duckdb-cli), else a built-in prompt: statements end
    with a semicolon, .tables lists tables and views, .quit exits.
    """
    from tracedb.catalog import nsys_tables
    from tracedb.cli import repl
    from tracedb.report.captures import numbers
    from tracedb.storage import connection as database
    from tracedb.storage.database_file import absolute

    if is_lake(db) and (is_ui or dialect):
        raise click.UsageError("of a lake there is the plain prompt only: neither -ui nor --as")
    if is_ui and (builtin or dialect):
        raise click.UsageError("-ui goes with neither --builtin nor --as")
    if captures and not dialect:
        raise click.UsageError("--capture needs --as nsys")
    program = None if builtin else shutil.which("duckdb")
    with database.open_read_only(db, None, nsys_tables.SETTINGS if dialect else None) as connection:
        chosen = numbers(connection, captures)
        if dialect:
            nsys_tables.install(connection, chosen)
            if (count := nsys_tables.pooled(connection)) > 1:
                warn(nsys_tables.pooled_warning(count))
        if is_ui:
            _check_ui(program)
        if program is None or is_remote(db):
            note("the built-in prompt: end a statement with ; and exit with .quit (pip install duckdb-cli: more)")
            repl.converse(connection)
            return
    if is_lake(db):
        _converse_with_lake(program, db)
        return
    if is_ui:
        os.execv(program, _ui_command(absolute(db)))
    made = ["-cmd", f"SET integer_division = true; {nsys_tables.statements(chosen)}"] if dialect else []
    os.execv(program, ["duckdb", "-readonly", *made, str(absolute(db))])


def _converse_with_lake(program: str, lake: Path) -> None:
    """Run the DuckDB shell on a database whose tables are views over the lake, which lasts as long as the shell."""
    from tracedb.storage.connection import as_file
    from tracedb.storage.spill_folder import temporary_folder

    with temporary_folder() as folder:
        sys.exit(subprocess.run([program, "-readonly", str(as_file(lake, folder))], check=False).returncode)


def _check_ui(program: str | None) -> None:
    """Raise ``TracedbError`` if the DuckDB shell or its extension ``ui`` is missing. Nothing is installed."""
    from tracedb.errors import TracedbError

    if program is None:
        raise TracedbError("shell -ui needs the DuckDB shell: pip install duckdb-cli, then run duckdb -c 'INSTALL ui'")
    query = "SELECT installed FROM duckdb_extensions() WHERE extension_name = 'ui'"
    command = [program, "-init", os.devnull, "-noheader", "-list", "-c", query]
    said = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False).stdout
    if said.strip() != "true":
        raise TracedbError(
            f"shell -ui: the DuckDB shell {program} has no extension ui: run duckdb -c 'INSTALL ui' once, where there "
            "is a network; tracedb installs nothing itself"
        )


def _ui_command(path: Path) -> list[str]:
    """Return the command for the UI, which keeps notes of its own and so takes the file as an attached one."""
    from tracedb.storage.connection import quoted

    attach = f"SET autoinstall_known_extensions = false; ATTACH {quoted(str(path))} AS trace (READ_ONLY); USE trace;"
    return ["duckdb", "-cmd", attach, "-ui"]
