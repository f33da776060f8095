"""The script of declared views for an engine: ``tracedb sql-dialect``."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module

from sqlglot import exp

from tracedb.dialect import clickhouse, view_tree
from tracedb.dialect.engines import ENGINES
from tracedb.errors import UsageError
from tracedb.storage import lake_tables, resources
from tracedb.storage.views import CURRENT

CLASS_COLUMNS = {
    **dict.fromkeys(("name", "class", "rule_source", "shipped_class", "short_name"), "VARCHAR"),
    "priority": "BIGINT",
}
"""Columns of ``main.kernel_class``: those of the private view ``v1._kernel_class``."""


@cache
def declared(engine: str) -> tuple[str, ...]:
    """Return the public views that are declared for an engine, each proven equal there (Trino: only parsed)."""
    return _declarations()[engine].views


def reason(engine: str, view: str) -> str | None:
    """Return the construct that prevents a view in an engine; None if it is declared there, or was not tried."""
    return _declarations()[engine].reasons.get(view)


def statements(engine: str, names: Sequence[str] = ()) -> list[str]:
    """Return the statements that create the views (default: all declared ones) over the tables in ``main``.

    Raises ``UsageError`` for a view that is not declared for the engine.
    """
    chosen = wanted(engine, names)
    rewritten: Callable[[exp.Expr], str] = import_module(f"tracedb.dialect.{engine}").rewritten
    databases = [] if engine == "trino" else [f"CREATE DATABASE IF NOT EXISTS {CURRENT}"]
    return databases + [
        f"CREATE {'VIEW' if engine == 'clickhouse' else 'OR REPLACE VIEW'} {CURRENT}.{name} AS\n"
        + rewritten(view_tree.tree(name))
        for name in view_tree.in_order(*chosen)
    ]


def wanted(engine: str, names: Sequence[str]) -> list[str]:
    """Return the views with these names, or all declared ones. Raises ``UsageError`` for one that is not declared."""
    chosen = [name.replace("-", "_").removeprefix(f"{CURRENT}.") for name in names] or list(declared(engine))
    for name in chosen:
        _check(engine, name)
    return chosen


def script(engine: str, names: Sequence[str] = ()) -> str:
    """Return the file of statements with a header that says what it needs."""
    made = [*tables(engine), *statements(engine, names)]
    return "\n".join([*_header(engine), *(f"{text};\n" for text in made)])


def tables(engine: str) -> list[str]:
    """Return the statements that create the tables of a lake and ``main.kernel_class``, empty, in ClickHouse.

    Spark and Trino read the Parquet files themselves; their types are those of the files.
    """
    if engine != "clickhouse":
        return []
    declared_tables = {name: dict(columns) for name, columns in lake_tables.declared().items()}
    declared_tables[view_tree.CLASS_TABLE] = CLASS_COLUMNS
    return ["CREATE DATABASE IF NOT EXISTS main"] + [
        f"CREATE TABLE IF NOT EXISTS main.{table} ("
        + ", ".join(
            f"`{name}` {clickhouse.TYPES[lake_tables.stored_type(name, kind)]}" for name, kind in columns.items()
        )
        + ") ENGINE = MergeTree ORDER BY tuple()"
        for table, columns in declared_tables.items()
    ]


def _check(engine: str, name: str) -> None:
    if name in declared(engine):
        return
    found = reason(engine, name)
    why = f" ({found})" if found else ""
    raise UsageError(
        f"{name} is not declared for {engine}{why}; run it by DuckDB (tracedb report, tracedb.spark.run), or choose "
        f"one that `tracedb sql-dialect {engine} --list` names"
    )


def _header(engine: str) -> list[str]:
    proven = "parsed, not executed" if engine == "trino" else "proven to give DuckDB's rows"
    lines = [
        f"-- tracedb's views {CURRENT} for {engine}, {proven}; made by `tracedb sql-dialect {engine}`.",
        "-- They read the tables of a lake in the database main, and main.kernel_class, which DuckDB makes:",
        "--   tracedb sql --lake DIR 'FROM v1._kernel_class' -o kernel_class.parquet",
    ]
    if engine == "clickhouse":
        lines.append(f"SET {', '.join(f'{name} = {value}' for name, value in clickhouse.SETTINGS.items())};")
    return lines


@dataclass(frozen=True)
class Declaration:
    """What ``sql/ENGINES.toml`` says of an engine."""

    views: tuple[str, ...]
    reasons: dict[str, str]
    """View that is not offered → the construct that prevents it."""


@cache
def _declarations() -> dict[str, Declaration]:
    found = tomllib.loads(resources.text("sql", "ENGINES.toml"))
    return {engine: Declaration(tuple(found[engine]["views"]), found[engine]["not"]) for engine in ENGINES}
