"""Views on inline rows: an empty database, rows put in by table, rows asked back, hooks filled as a report does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import duckdb
import pytest

from support import rows
from support.loading import empty_connection
from tracedb.report.view_template import By, Edits, resolve
from tracedb.storage.connection import plan_quickly
from tracedb.storage.views import View

Rows = list[tuple[Any, ...]]
Insert = Callable[..., None]


@pytest.fixture(scope="session")
def installed() -> Iterator[duckdb.DuckDBPyConnection]:
    """A database with tables and views, in which views over many others are planned as by a report."""
    with empty_connection() as connection:
        plan_quickly(connection)
        connection.execute("SET threads = 1")  # several cost more than they gain on a few rows
        yield connection


@pytest.fixture
def db(installed: duckdb.DuckDBPyConnection) -> Iterator[duckdb.DuckDBPyConnection]:
    """The same, empty at the start of each test."""
    installed.execute("BEGIN")
    yield installed
    installed.execute("ROLLBACK")


@pytest.fixture
def insert(db: duckdb.DuckDBPyConnection) -> Callable[..., None]:
    """``insert(table, "column column", row, row, column=value)``: rows, and columns that all of them share."""
    return partial(rows.insert, db)


@pytest.fixture
def ask(db: duckdb.DuckDBPyConnection) -> Callable[[str], Rows]:
    """``ask(query)``: the rows of a query."""
    return lambda query: db.execute(query).fetchall()


@pytest.fixture
def report(db: duckdb.DuckDBPyConnection) -> Callable[..., Rows]:
    """``report(view, columns, by={name: SQL over {base}}, where={base: condition}, join={base: text})``, sorted.

    The SELECT of the view with its hooks filled, as ``tracedb report`` does it.
    """

    def run(
        view: str,
        columns: str,
        by: Mapping[str, str] | None = None,
        where: Mapping[str, str] | None = None,
        join: Mapping[str, str] | None = None,
        is_part: bool = False,
    ) -> Rows:
        groups = [By(name, _over(column)) for name, column in (by or {}).items()]
        filters = {base: [condition] for base, condition in (where or {}).items()}
        part = View("v1", "_reached_event").select if is_part else None
        text = resolve(View("v1", view).select, Edits(groups, filters, join or {}, part=part))
        return db.execute(f"SELECT {columns} FROM ({text}) ORDER BY ALL").fetchall()

    return run


def _over(column: str) -> Callable[[str], str]:
    return lambda base: column.format(base=base)


@pytest.fixture(scope="module")
def together(installed: duckdb.DuckDBPyConnection) -> Callable[[Callable[[Insert], None], str], Rows]:
    """``together(write, query)``: the rows of a query over rows that ``write(insert)`` puts in.

    For cases that do not affect each other: planning a query over many views takes longer than all their rows do.
    """

    def run(write: Callable[[Insert], None], query: str) -> Rows:
        installed.execute("BEGIN")
        try:
            write(partial(rows.insert, installed))
            return installed.execute(query).fetchall()
        finally:
            installed.execute("ROLLBACK")

    return run


@pytest.fixture
def shuffled(db: duckdb.DuckDBPyConnection) -> Callable[[], None]:
    """``shuffled()`` turns the stored order of all rows round; no answer may change by it."""

    def turn() -> None:
        for table in ("kernel_event", "launch", "op", "annotation", "annotation_kernel"):
            db.execute(f"CREATE TEMP TABLE turned AS SELECT * FROM main.{table} ORDER BY rowid DESC")
            db.execute(f"DELETE FROM main.{table}")
            db.execute(f"INSERT INTO main.{table} SELECT * FROM turned ORDER BY rowid")
            db.execute("DROP TABLE turned")

    return turn
