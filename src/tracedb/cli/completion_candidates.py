"""Shell completion: reports, and the labels, classes and ranks of the database.

A database that cannot be read or is being written gives no candidates: completion prints no errors and never waits.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import click
from click.shell_completion import BashComplete, CompletionItem, add_completion_class

Complete = Callable[[click.Context, click.Parameter, str], list[str]]

_KEYS = "SELECT DISTINCT unnest(map_keys(c.labels)) FROM main.capture AS c ORDER BY ALL"
_PAIRS = """SELECT DISTINCT pair.key || '=' || pair.value
            FROM (SELECT unnest(map_entries(c.labels)) AS pair FROM main.capture AS c) ORDER BY ALL"""
_CLASSES = "SELECT DISTINCT n.class FROM v1._kernel_class AS n UNION SELECT unnest(['copy', 'graph']) ORDER BY ALL"
_RELATIONS = """SELECT table_name FROM duckdb_tables() WHERE database_name = current_database() AND schema_name = 'main'
                UNION SELECT view_name FROM duckdb_views() WHERE database_name = current_database()
                AND schema_name = 'v1' AND NOT starts_with(view_name, '_') ORDER BY ALL"""


class WordsOfBash(BashComplete):
    """Completion in bash, which takes ``KEY=VALUE`` for three words and replaces only the last one."""

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the cursor and the one at it, with ``=`` and its neighbours joined again."""
        words, last = super().get_completion_args()
        joined: list[str] = []
        for word in [*words, last]:
            if joined and (word == "=" or joined[-1].endswith("=")):
                joined[-1] += word
            else:
                joined.append(word)
        *words, self._incomplete = joined
        return words, self._incomplete

    def format_completion(self, item: CompletionItem) -> str:
        """Return a candidate without what stands before the last ``=`` of the word, which bash keeps."""
        word = self._incomplete.partition("=")[2] if self._incomplete.startswith("--") else self._incomplete
        kept = word.rfind("=") + 1
        return f"{item.type},{str(item.value)[kept:]}"


def register() -> None:
    """Let click use ``WordsOfBash``."""
    add_completion_class(WordsOfBash)


def reports(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the reports whose name starts with ``incomplete``."""
    from tracedb.report import registry

    return [report.name for report in registry.every() if report.name.startswith(incomplete)]


def groups(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the values of ``--by``: the built-in ones and the label keys of the database."""
    from tracedb.report.filters import BY_BUILT_IN

    always = [name for name in BY_BUILT_IN if name.startswith(incomplete)]
    return [*_asked(_KEYS)(ctx, parameter, incomplete), *always]


def pictures(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the pictures whose name starts with ``incomplete``."""
    from tracedb.plot import registry

    return [picture.name for picture in registry.PICTURES if picture.name.startswith(incomplete)]


def _database(ctx: click.Context) -> Path:
    """Return the database named on the command line so far, before or after the command's name."""
    before = ctx.parent.params.get("db") if ctx.parent else None
    is_said = ctx.get_parameter_source("db") is click.core.ParameterSource.COMMANDLINE
    return Path(ctx.params["db"] if is_said or not before else before)


def _asked(query: str) -> Complete:
    """Return a completion from the texts that a query on the database returns."""

    def complete(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
        import duckdb

        from tracedb.errors import TracedbError
        from tracedb.storage.connection import open_read_only
        from tracedb.storage.lock_wait import PATIENCE, Patience

        PATIENCE.set(Patience(0, lambda text: None))
        with (
            suppress(TracedbError, duckdb.Error, OSError),
            open_read_only(_database(ctx)) as connection,
        ):
            found = [str(value) for (value,) in connection.execute(query).fetchall()]
            said, comma, rest = incomplete.rpartition(",")
            return [said + comma + value for value in found if value.startswith(rest) and value.isprintable()]
        return []

    return complete


def relations(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the tables and views of the database; without one, those that tracedb ships, which it then shows."""
    if _database(ctx).exists():
        return _asked(_RELATIONS)(ctx, parameter, incomplete)
    from tracedb.storage import schema, views

    named = {view.name for view in views.shipped() if not view.name.startswith("_")}
    named.update(re.findall(r"^CREATE TABLE main\.(\w+)", schema.ddl(), re.MULTILINE))
    return sorted(name for name in named if name.startswith(incomplete))


labels = _asked(_PAIRS)
classes = _asked(_CLASSES)
ranks = _asked("SELECT DISTINCT c.rank FROM main.capture AS c WHERE c.rank IS NOT NULL ORDER BY ALL")
sources = _asked("SELECT DISTINCT c.source FROM main.capture AS c ORDER BY ALL")
