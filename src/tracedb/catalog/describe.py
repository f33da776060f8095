"""The content of a file: its tables and views with their columns, from the comments in the file."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from tracedb.errors import UsageError
from tracedb.output import Answer, Column, Show, about, from_rows
from tracedb.storage import schema, template_database, views
from tracedb.storage.connection import open_read_only
from tracedb.storage.lake_store import is_lake

if TYPE_CHECKING:
    from collections.abc import Sequence

TEXT = "VARCHAR"
SHORT_NAME_REPLACED = "short name replaced"
"""State of a view whose alias in ``main`` is missing or reads something else."""
_FOLDED = ("grain", "meaning")
"""Columns of sentences, which a table folds; all others stand whole or are cut."""


@contextmanager
def opened(path: Path) -> Iterator[tuple[duckdb.DuckDBPyConnection, bool]]:
    """Open the file, or an empty database with the shipped tables and views if there is none, or a lake; say which."""
    if path.exists() and not is_lake(path):
        with open_read_only(path) as connection:
            yield connection, True
        return
    with template_database.opened() as connection:
        yield connection, False


def _table(names: Sequence[tuple[str, str]], rows: Sequence[Sequence[object]]) -> Answer:
    answer = from_rows([Column(name, TEXT, None, text) for name, text in names], rows)
    answer.shows = [Show((name,), name, "fold" if name in _FOLDED else "text", floor=24) for name, _ in names]
    return answer


def list_views(connection: duckdb.DuckDBPyConnection) -> Answer:
    """Return version, name, grain and meaning of each public view."""
    rows = connection.execute(
        """SELECT schema_name, view_name, coalesce(comment, '') FROM duckdb_views()
           WHERE database_name = current_database() AND NOT internal AND starts_with(schema_name, 'v')
             AND NOT starts_with(view_name, '_')
           ORDER BY schema_name, view_name"""
    ).fetchall()
    names = [
        ("version", "View version."),
        ("name", "View."),
        ("grain", "What one row is."),
        ("meaning", "What it says."),
    ]
    return _table(names, [(version, name, grain(text), first_sentence(text)) for version, name, text in rows])


def grain(comment: str) -> str | None:
    """Return the grain of a view (what one row is), from its comment."""
    said = re.search(r"Grain: (.*?)\.(?:\s|$)", comment)
    return said[1] if said else None


def first_sentence(comment: str) -> str:
    """Return the first sentence of a comment."""
    return re.split(r"(?<=\.)\s", comment, maxsplit=1)[0]


def list_tables(connection: duckdb.DuckDBPyConnection) -> Answer:
    """Return each table with its meaning."""
    rows = schema.tables(connection)
    return _table([("table", "Table."), ("meaning", "What one row is.")], rows)


def list_columns(connection: duckdb.DuckDBPyConnection, schema_name: str, name: str) -> Answer:
    """Return the columns of a table or view with type, unit and meaning."""
    names = [("column", "Column."), ("type", "Type."), ("unit", "Unit."), ("meaning", "Meaning.")]
    described = [about(*column) for column in schema.columns(connection, schema_name, name)]
    return _table(names, [(item.name, item.type, item.unit, item.description) for item in described])


def find_table(connection: duckdb.DuckDBPyConnection, name: str) -> tuple[str, str]:
    """Return the schema and name of the table or view that a name means. Raises ``UsageError``.

    Views are also known by ``v1.NAME`` and by the name of their report.
    """
    known = [table for table, _ in schema.tables(connection)]
    version, _, bare = name.rpartition(".")
    bare = bare.replace("-", "_")
    if bare in known and version in ("", "main"):
        return "main", bare
    shown = [view for view in views.shipped() if not view.name.startswith("_") and version in ("", view.version)]
    if any(view.name == bare for view in shown):
        return next((view.version, view.name) for view in shown if view.name == bare)
    close = difflib.get_close_matches(bare, [*known, *(view.name for view in shown)], 1)
    meant = f"did you mean {close[0]}?" if close else f"there are: {', '.join(known)};"
    raise UsageError(f"there is no table or view {name!r}; {meant} `tracedb views` lists the views")


def find_view(name: str) -> views.View:
    """Return the view for ``v1.name``, ``name`` or the name of its report. Raises ``UsageError``."""
    version, dot, bare = name.rpartition(".")
    return views.find(bare.replace("-", "_"), version if dot else views.CURRENT)


def comment(connection: duckdb.DuckDBPyConnection, view: views.View) -> str:
    """Return the comment of a view in the file."""
    rows = connection.execute(
        """SELECT coalesce(comment, '') FROM duckdb_views()
           WHERE database_name = current_database() AND schema_name = ? AND view_name = ?""",
        [view.version, view.name],
    ).fetchall()
    return str(rows[0][0]) if rows else ""


def verify(connection: duckdb.DuckDBPyConnection) -> Answer:
    """Compare each shipped view and macro with the file: existence, the digest stored with it, and its short name."""
    noted = {(row[0], row[1]): row[2] for row in connection.execute("FROM meta.view_version").fetchall()}
    there = connection.execute(
        """SELECT schema_name, view_name FROM duckdb_views()
           WHERE database_name = current_database() AND NOT internal
           UNION ALL
           SELECT schema_name, function_name FROM duckdb_functions()
           WHERE database_name = current_database() AND function_type = 'macro' AND NOT internal"""
    ).fetchall()
    replaced = set(views.replaced_aliases(connection))
    rows = []
    for view in [view for version in views.VERSIONS for view in views.shipped(version)]:
        key = (view.version, view.name)
        made = "ok" if noted.get(key) == view.digest else "of another tracedb"
        if made == "ok" and view.version == views.CURRENT and view.name in replaced:
            made = SHORT_NAME_REPLACED
        rows.append((*key, made if key in there else "missing", view.digest))
    names = [
        ("version", "View version."),
        ("name", "View or macro."),
        ("state", f"ok, missing, of another tracedb, {SHORT_NAME_REPLACED}."),
        ("sha256", "SHA-256 of the shipped file."),
    ]
    return _table(names, rows)
