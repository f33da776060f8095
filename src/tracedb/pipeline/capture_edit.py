"""Edit captures that are already in a database: change labels, or remove captures with all their rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb

from tracedb.pipeline import after_load
from tracedb.pipeline.task import MEMORY_LIMIT
from tracedb.pipeline.writable_database import prepare
from tracedb.storage import pending_facts
from tracedb.storage.connection import attached, identifier, open_read_only, transaction, workbench

Choose = Callable[[duckdb.DuckDBPyConnection], Sequence[int]]
"""Returns the numbers of the selected captures, given a connection to the database."""
Changes = Mapping[str, str | None]
"""Label key → its new value; None removes the key."""


@dataclass(frozen=True)
class Edited:
    """A capture that was changed or removed."""

    capture_id: int
    path: str
    rank: int | None
    labels: dict[str, str]
    """Its labels now, or those it had before it was removed."""
    rows: int = 0
    """Number of rows removed with it from other tables."""


def label(database: Path, choose: Choose, changes: Changes) -> list[Edited]:
    """Set and remove labels of captures, and realign clocks: labels decide which captures belong together.

    Raises ``TracedbError`` if there is no such database, ``DatabaseBusy`` while another process holds it, and
    whatever ``choose`` raises; nothing is changed in these cases.
    """
    with _writing(database) as connection:
        numbers = choose(connection)
        set_labels(connection, numbers, changes)
        edited = _found(connection, numbers)
    after_load.complete(database)
    return edited


def set_labels(connection: duckdb.DuckDBPyConnection, numbers: Sequence[int], changes: Changes) -> None:
    """Set and remove labels of captures of the current catalog. Call inside a transaction."""
    for item in _found(connection, numbers):
        merged = {**item.labels, **changes}
        kept = {key: value for key, value in sorted(merged.items()) if value is not None}
        if kept != item.labels:
            connection.execute(
                "UPDATE main.capture SET labels = map(?::VARCHAR[], ?::VARCHAR[]) WHERE capture_id = ?",
                [list(kept), list(kept.values()), item.capture_id],
            )
            pending_facts.owe_all(connection, [item.capture_id])


def remove(database: Path, choose: Choose) -> list[Edited]:
    """Remove captures with their rows in every table, in one transaction, and realign the clocks of the others.

    Raises as ``label`` does.
    """
    with _writing(database) as connection:
        numbers = choose(connection)
        removed = [_removed(connection, item) for item in _found(connection, numbers)]
        left = connection.execute("SELECT capture_id FROM main.capture ORDER BY capture_id").fetchall()
        pending_facts.owe_all(connection, [number for (number,) in left])
    after_load.complete(database)
    return removed


def _removed(connection: duckdb.DuckDBPyConnection, item: Edited) -> Edited:
    tables = connection.execute(
        """SELECT c.schema_name, c.table_name FROM duckdb_columns() AS c
           INNER JOIN duckdb_tables() AS t USING (table_oid, database_name, schema_name)
           WHERE c.database_name = current_database() AND c.column_name = 'capture_id'
             AND c.table_name <> 'capture' AND NOT t.temporary
           ORDER BY ALL"""
    ).fetchall()
    rows = 0
    for schema, table in tables:
        named = f"{identifier(schema)}.{identifier(table)}"
        done = connection.execute(f"DELETE FROM {named} WHERE capture_id = ?", [item.capture_id]).fetchone()
        rows += int(done[0]) if done and schema == "main" else 0
    connection.execute("DELETE FROM main.clock_alignment WHERE reference_capture_id = ?", [item.capture_id])
    connection.execute("DELETE FROM main.graph_link WHERE origin_capture_id = ?", [item.capture_id])
    connection.execute("DELETE FROM main.capture WHERE capture_id = ?", [item.capture_id])
    return Edited(item.capture_id, item.path, item.rank, item.labels, rows)


@contextmanager
def _writing(database: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open an existing database in one transaction, with its tables and views up to date."""
    with open_read_only(database):
        pass  # reports a missing or foreign database in one line
    with (
        workbench(MEMORY_LIMIT, 1, database) as connection,
        attached(connection, database),
        transaction(connection),
    ):
        prepare(connection, database)
        yield connection


def _found(connection: duckdb.DuckDBPyConnection, numbers: Sequence[int]) -> list[Edited]:
    rows = connection.execute(
        """SELECT capture_id, coalesce(path, ''), rank, labels FROM main.capture
           WHERE list_contains(?::INTEGER[], capture_id) ORDER BY capture_id""",
        [list(numbers)],
    ).fetchall()
    return [Edited(number, path, rank, dict(labels or {})) for number, path, rank, labels in rows]


def label_known(database: Path, numbers: Sequence[int], changes: Changes) -> None:
    """Set labels of captures of a database; the clock alignment becomes pending. Raises as ``label`` does."""
    with _writing(database) as connection:
        set_labels(connection, numbers, changes)
