"""Views on inline rows: an empty database, rows put in by table, rows asked back, hooks filled as a report does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import duckdb
import pytest

from support import rows
from support.loading import empty_connection
from support.report_text import filled
from tracedb.storage.connection import plan_quickly

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
    """``ask(query)``: the rows of a query. One over many views takes 0.1 to 0.5 s to plan: see ``cases``."""
    return lambda query: db.execute(query).fetchall()


@pytest.fixture
def report(db: duckdb.DuckDBPyConnection) -> Callable[..., Rows]:
    """``report(view, columns, by={name: SQL over {base}}, where={base: condition}, join={base: text})``, sorted.

    The SELECT of the view with its hooks filled, as ``tracedb report`` does it.
    """
    return lambda *words, **hooks: db.execute(filled(*words, **hooks)).fetchall()


@pytest.fixture(scope="module")
def together(installed: duckdb.DuckDBPyConnection) -> Callable[..., Rows]:
    """``together(write, query)``: the rows of a query over rows that ``write(insert)`` puts in.

    For cases that do not affect each other: planning a query over many views takes longer than all their rows do.
    """

    def run(write: Callable[[Insert], None], query: str) -> Rows:
        with _inside(installed, write):
            return installed.execute(query).fetchall()

    return run


@contextmanager
def _inside(connection: duckdb.DuckDBPyConnection, write: Callable[[Insert], None]) -> Iterator[None]:
    """Rows are in the database inside the block."""
    connection.execute("BEGIN")
    try:
        write(partial(rows.insert, connection))
        yield
    finally:
        connection.execute("ROLLBACK")


@pytest.fixture(scope="module")
def cases(installed: duckdb.DuckDBPyConnection) -> Callable[..., list[dict[str, list[Any]]]]:
    """``cases({name: write}, query, query)``: for each query, the rows of each case.

    Each ``write(insert)`` puts in its captures as if it were alone, with numbers below 100; the case with place ``n``
    gets 100 n added to them, and the label ``case``. The first column of a query is ``labels['case']``, and the rows
    are what follows it: a tuple, or a single value. ``prepare(connection)`` is called when all rows are in; with
    ``is_turned``, their stored order is turned round after that.

    This is how to write a cheap test of a view over many others: the cases are functions, a module-scoped fixture asks
    once, and each test looks at the rows of its case. Cases must not affect each other: so not for views that compare
    configurations, nor for rules of the user.
    """

    def run(
        writers: Mapping[str, Callable[[Insert], None]],
        *queries: str,
        prepare: Callable[[duckdb.DuckDBPyConnection], object] | None = None,
        is_turned: bool = False,
    ) -> list[dict[str, list[Any]]]:
        def write(insert: Insert) -> None:
            for place, (name, writer) in enumerate(writers.items()):
                writer(partial(_insert_apart, insert, 100 * place, name))
            if prepare is not None:
                prepare(installed)
            if is_turned:
                turn(installed)

        with _inside(installed, write):
            return [_by_case(writers, installed.execute(query).fetchall()) for query in queries]

    return run


def _by_case(names: Iterable[str], found: Rows) -> dict[str, list[Any]]:
    """Return the rows of each case, without its name."""
    of: dict[str, list[Any]] = {name: [] for name in names}
    for name, *values in found:
        of[name].append(values[0] if len(values) == 1 else tuple(values))
    return of


def _insert_apart(
    insert: Insert, first: int, case: str, table: str, columns: str, *given: tuple[Any, ...], **shared: Any
) -> None:
    """Insert rows of one case: ``first`` is added to numbers of captures, and captures are labelled."""
    names = columns.split()

    def moved(name: str, value: Any) -> Any:
        if name == "labels":
            return {"case": case, **value}
        return value + first if name.endswith("capture_id") and value is not None else value

    if table == "capture" and "labels" not in names:
        shared.setdefault("labels", {})
    moved_rows = [tuple(map(moved, names, row)) for row in given]
    insert(table, columns, *moved_rows, **{name: moved(name, value) for name, value in shared.items()})


@pytest.fixture
def shuffled(db: duckdb.DuckDBPyConnection) -> Callable[[], None]:
    """``shuffled()`` turns the stored order of all rows round; no answer may change by it."""
    return partial(turn, db)


def turn(connection: duckdb.DuckDBPyConnection) -> None:
    """Turn the stored order of all rows round."""
    for table in ("kernel_event", "launch", "op", "annotation", "annotation_kernel"):
        connection.execute(f"CREATE TEMP TABLE turned AS SELECT * FROM main.{table} ORDER BY rowid DESC")
        connection.execute(f"DELETE FROM main.{table}")
        connection.execute(f"INSERT INTO main.{table} SELECT * FROM turned ORDER BY rowid")
        connection.execute("DROP TABLE turned")
