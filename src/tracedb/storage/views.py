"""The versioned views and the macros that they share: install, find and verify them."""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Sequence
from functools import cache
from graphlib import TopologicalSorter
from typing import NamedTuple

import duckdb

from tracedb.errors import UsageError
from tracedb.storage import resources
from tracedb.storage.connection import identifier, in_memory, quoted

VERSIONS = ("v1",)
CURRENT = VERSIONS[-1]
_NO_CODE = re.compile(r"'(?:[^']|'')*'|--[^\n]*|/\*.*?\*/", re.DOTALL)
_INLINE = re.compile(r"v\d+\.(_\w+) AS (\w+) /\* inline \*/")
_CASE = re.compile(r"/\* case \*/ \(.*\n\) /\* end case \*/", re.DOTALL)
_RULES = "_kernel_rule"
_SELECT = re.compile(r"CREATE VIEW [\w.]+ AS\s(.*?);\s*(?=COMMENT ON|\Z)", re.DOTALL)


class View(NamedTuple):
    """A shipped view, or a shipped macro: an expression shared by several views. Macros are private."""

    version: str
    name: str

    @property
    def topic(self) -> str:
        """The folder that contains its file."""
        return _topics(self.version)[f"{self.name}.sql"]

    @property
    def text(self) -> str:
        """The SQL that creates it: its file, with the hook ``case`` filled in.

        The hook replaces a query over the shipped rules by a CASE, whose constant patterns DuckDB compiles once; those
        of a table it compiles again for each name.
        """
        text = self._written
        return _CASE.sub(lambda _: _case(self.version), text) if "/* case */" in text else text

    @property
    def _written(self) -> str:
        """Its file."""
        return resources.text("sql", self.version, self.topic, f"{self.name}.sql")

    @property
    def has_sidecar(self) -> bool:
        """Whether it has a sidecar file that defines a report."""
        return f"{self.name}.toml" in _topics(self.version)

    @property
    def sidecar(self) -> str:
        """Its TOML sidecar."""
        name = f"{self.name}.toml"
        return resources.text("sql", self.version, _topics(self.version)[name], name)

    @property
    def needs(self) -> set[str]:
        """Names of the views and macros of its version that its file uses, also within the hook ``case``."""
        named = re.findall(rf"\b{self.version}\.(\w+)", _NO_CODE.sub("", self._written))
        return set(named) - {self.name}

    @property
    def is_private(self) -> bool:
        """Whether it is internal to its version."""
        return self.name.startswith("_")

    @property
    def digest(self) -> str:
        """SHA-256 of its file; with the hook ``case``, also of the rules that fill it."""
        return _digest(self)

    @property
    def select(self) -> str:
        """The SELECT of the view, including hooks, without CREATE VIEW and comments.

        The hook ``inline`` replaces the name of a private view by its text.
        """
        match = _SELECT.search(self.text)
        if match is None:
            raise AssertionError(f"sql/{self.version}/{self.name}.sql does not hold a CREATE VIEW")
        return _INLINE.sub(self._inlined, match[1].strip())

    def _inlined(self, match: re.Match[str]) -> str:
        indented = "\n".join(f"    {line}" if line else "" for line in View(self.version, match[1]).select.split("\n"))
        return f"(\n{indented}\n) AS {match[2]}"


@cache
def _case(version: str) -> str:
    """Return the CASE from ``subject`` to the priority of the first shipped rule that matches it."""
    with in_memory() as connection:
        rules = connection.execute(
            f"SELECT r.priority, r.pattern FROM ({View(version, _RULES).select}) AS r ORDER BY r.priority"
        ).fetchall()
    branches = [f"    WHEN regexp_matches(subject, {quoted(pattern)}) THEN {priority}\n" for priority, pattern in rules]
    return f"CASE\n{''.join(branches)}END"


@cache  # every report and every ingest compares all of them with those of the database
def _digest(view: View) -> str:
    text = view._written
    if "/* case */" in text:  # not its text: the rules are run only where views are installed
        text += View(view.version, _RULES)._written
    return hashlib.sha256(text.encode()).hexdigest()


@cache
def _topics(version: str) -> dict[str, str]:
    """Return the folder of each file of a version: a view's SQL, or its sidecar."""
    folders = [entry for entry in resources.folder("sql").joinpath(version).iterdir() if entry.is_dir()]
    return {
        file.name: folder.name
        for folder in folders
        for file in folder.iterdir()
        if file.name.endswith((".sql", ".toml"))
    }


def shipped(version: str = CURRENT) -> list[View]:
    """Return the views of a version by name.

    Raises ``UsageError`` for a version that this tracedb does not ship.
    """
    if version not in VERSIONS:
        raise UsageError(f"there is no view version {version!r}; there are: {', '.join(VERSIONS)}")
    return list(_shipped(version))


@cache
def _shipped(version: str) -> tuple[View, ...]:
    files = sorted(_topics(version))
    return tuple(View(version, name.removesuffix(".sql")) for name in files if name.endswith(".sql"))


def by_dependency(version: str = CURRENT) -> list[View]:
    """Return the views of a version in a fixed order in which they can be created.

    Raises ``graphlib.CycleError`` if views read each other in a cycle, which the SQL linter finds first.
    """
    sorter = TopologicalSorter({view.name: sorted(view.needs) for view in shipped(version)})
    return [View(version, name) for name in sorter.static_order()]


def macros(*names: str) -> list[str]:
    """Return the statements that create macros of the current version, and those they need, in a catalog without any.

    For SQL that runs outside a database that has the views.
    """
    needs: dict[str, list[str]] = {}
    left = list(names)
    while left:
        macro = View(CURRENT, left.pop())
        needs[macro.name] = sorted(macro.needs)
        left += needs[macro.name]
    order = TopologicalSorter(needs).static_order()
    return [f"CREATE SCHEMA IF NOT EXISTS {CURRENT}", *(View(CURRENT, name).text for name in order)]


def create(connection: duckdb.DuckDBPyConnection, *names: str) -> None:
    """Create macros in a catalog without any (see ``macros``)."""
    for text in macros(*names):
        connection.execute(text)


def find(name: str, version: str = CURRENT) -> View:
    """Return the public view ``name``. Raises ``UsageError`` if there is none."""
    for view in shipped(version):
        if view.name == name and not view.is_private:
            return view
    names = [view.name for view in shipped(version) if not view.is_private]
    close = difflib.get_close_matches(name, names, 1)
    meant = f"did you mean {close[0]}? " if close else ""
    raise UsageError(f"there is no view {name!r} in {version}; {meant}`tracedb views` lists them")


def install(connection: duckdb.DuckDBPyConnection) -> None:
    """Create every shipped view, macro and alias in the current catalog. Call inside a transaction."""
    aliased = _aliased(connection)
    for version in VERSIONS:
        connection.execute(f"DROP SCHEMA IF EXISTS {version} CASCADE")
        connection.execute(f"CREATE SCHEMA {version}")
        _create_views(connection, version, aliased if version == CURRENT else [])
    connection.execute("DELETE FROM meta.view_version")
    for version in VERSIONS:
        for view in shipped(version):
            connection.execute("INSERT INTO meta.view_version VALUES (?, ?, ?)", [version, view.name, view.digest])
    _comment_aliases(connection, aliased)


def _aliased(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Return the public views that get an alias in ``main``: all but those whose name a table has, as main.replay."""
    tables = {
        name
        for (name,) in connection.execute(
            """SELECT table_name FROM duckdb_tables()
               WHERE database_name = current_database() AND schema_name = 'main'"""
        ).fetchall()
    }
    return [view.name for view in shipped(CURRENT) if not view.is_private and view.name not in tables]


def _create_views(connection: duckdb.DuckDBPyConnection, version: str, aliased: Sequence[str]) -> None:
    """Create the views, macros and aliases of a version in its empty schema.

    DuckDB binds a view when it is created, and with it all views below it. An empty table with the columns of a view
    takes its place until every view that reads it has been created, so that each is bound alone: a quarter of the time.
    """
    views = []
    for view in by_dependency(version):
        select = _SELECT.search(view.text)
        if select is None:
            connection.execute(view.text)
            continue
        described = connection.execute(f"DESCRIBE {select[1]}").fetchall()
        columns = ", ".join(f"{identifier(name)} {kind}" for name, kind, *_ in described)
        connection.execute(f"CREATE TABLE {version}.{view.name} ({columns})")
        views.append(view)
    for name in aliased:
        connection.execute(f"CREATE OR REPLACE VIEW main.{name} AS FROM {version}.{name}")
    for view in reversed(views):
        connection.execute(f"DROP TABLE {version}.{view.name}")
        connection.execute(view.text)


def _comment_aliases(connection: duckdb.DuckDBPyConnection, aliased: Sequence[str]) -> None:
    """Copy the comments of views to their aliases, which do not inherit them."""
    views = connection.execute(
        """SELECT view_name, comment FROM duckdb_views()
           WHERE database_name = current_database() AND schema_name = ? AND comment <> ''""",
        [CURRENT],
    ).fetchall()
    columns = connection.execute(
        """SELECT table_name, column_name, comment FROM duckdb_columns()
           WHERE database_name = current_database() AND schema_name = ? AND comment IS NOT NULL""",
        [CURRENT],
    ).fetchall()
    for view, text in views:
        if view in aliased:
            connection.execute(f"COMMENT ON VIEW main.{view} IS {quoted(text)}")
    for view, column, text in columns:
        if view in aliased:
            connection.execute(f"COMMENT ON COLUMN main.{view}.{identifier(column)} IS {quoted(text)}")


def outdated(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Return the names of views and macros that are missing or whose installed digest differs from the shipped file."""
    installed = {
        (version, name): digest for version, name, digest in connection.execute("FROM meta.view_version").fetchall()
    }
    return [
        f"{view.version}.{view.name}"
        for version in VERSIONS
        for view in shipped(version)
        if installed.get((version, view.name)) != view.digest
    ]


def replaced_aliases(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Return the public views whose alias in ``main`` is missing or was replaced by another view."""
    held = dict(
        connection.execute(
            """SELECT view_name, sql FROM duckdb_views()
               WHERE database_name = current_database() AND schema_name = 'main' AND NOT internal
               UNION ALL
               SELECT table_name, NULL FROM duckdb_tables()
               WHERE database_name = current_database() AND schema_name = 'main'"""
        ).fetchall()
    )
    return [
        view.name for view in shipped(CURRENT) if not view.is_private and not _is_alias(view, held.get(view.name, ""))
    ]


def _is_alias(view: View, text: str | None) -> bool:
    """Return whether a view's text only reads ``view``; a table of the name (None) takes the alias's place."""
    reads = rf"AS\s+(SELECT\s+\*\s+)?FROM\s+\(?{view.version}\.{view.name}\)?\s*;?\s*"
    return text is None or re.search(f"{reads}$", text, re.IGNORECASE) is not None
