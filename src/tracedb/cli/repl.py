"""A built-in SQL prompt, used if the DuckDB shell is not installed."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING

from tracedb.catalog import user_sql
from tracedb.cli.options import say
from tracedb.errors import TracedbError
from tracedb.output import write
from tracedb.storage.interrupt import interruptible

if TYPE_CHECKING:
    import duckdb

ROWS = 50
_HELP = ".tables lists tables and views, .help says this, .quit leaves; SQL ends with ;"
_TABLES = """
SELECT schema_name AS schema, view_name AS name, 'view' AS kind FROM duckdb_views()
WHERE NOT internal AND NOT view_name LIKE '\\_%' ESCAPE '\\'
UNION ALL
SELECT schema_name, table_name, 'table' FROM duckdb_tables() WHERE NOT internal
ORDER BY schema, kind, name
"""


def converse(connection: duckdb.DuckDBPyConnection) -> None:
    """Read statements from stdin and answer them until ``.quit`` or the end. Errors are printed and do not end it."""
    is_terminal = sys.stdin.isatty()
    if is_terminal:
        importlib.import_module("readline")  # arrows and history in input()
    lines: list[str] = []
    while True:
        try:
            line = input(("   ...> " if lines else "tracedb> ") if is_terminal else "")
        except EOFError:
            line = ".quit" if not lines else ";"
        except KeyboardInterrupt:
            say("")
            lines = []
            continue
        if not lines and line.strip().startswith("."):
            if not _command(connection, line.strip()):
                return
            continue
        lines.append(line)
        text = "\n".join(lines).strip()
        if not text or text.endswith(";"):
            lines = []
            if text.strip("; \n"):
                _answer(connection, text)


def _command(connection: duckdb.DuckDBPyConnection, word: str) -> bool:
    """Run a dot command; return whether the prompt continues."""
    if word in (".quit", ".exit", ".q"):
        return False
    if word == ".tables":
        _answer(connection, _TABLES, most=0)
    else:
        say(_HELP if word == ".help" else f"no command {word}; {_HELP}")
    return True


def _answer(connection: duckdb.DuckDBPyConnection, text: str, most: int = ROWS) -> None:
    try:
        with user_sql.explained(), interruptible(connection):
            text = user_sql.variables_set(connection, text)
            if not text:
                return
            answer = user_sql.run(connection, text)
            more = bool(most) and user_sql.limited(answer, most)
            write(answer, "table", None)
        if more:
            say(f"the first {most} rows")
    except TracedbError as error:
        say(f"error: {error}")
    except KeyboardInterrupt:
        say("interrupted")
