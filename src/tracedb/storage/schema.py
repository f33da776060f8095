"""The schema declared in ``schemas/vN/``: create it, get its Arrow form and its documentation."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import duckdb

from tracedb.storage import resources
from tracedb.storage.connection import ROW_GROUP as ROW_GROUP  # re-exported for ingesters
from tracedb.storage.connection import SCHEMA_VERSION, in_memory

if TYPE_CHECKING:
    import pyarrow as pa

EVENT_TABLES = (
    *("kernel_event", "launch", "op", "annotation", "frame"),
    *("counter", "memory_event", "synchronization", "operator_sample", "measure", "device_condition"),
)
"""Tables whose rows come from trace events, one row per event."""


INGESTED_TABLES = (*EVENT_TABLES, "collective_call", "device", "kernel_resource", "ingest_issue")
"""Tables that ingesters fill besides ``capture``."""


SETTINGS = ("kernel_rule", "frame_rule", "why_rule", "time_bound", "device_peak")
"""Tables that a user edits."""


ACROSS_CAPTURES = ("clock_alignment", "graph_link")
"""Tables derived from several captures."""


class Column(NamedTuple):
    """A column of a table or view, with its documentation."""

    name: str
    type: str
    description: str


@cache  # used for every file that is loaded
def ddl() -> str:
    """Return the DDL of the current schema version: its files, in the order of their names."""
    version = f"v{SCHEMA_VERSION}"
    names = sorted(entry.name for entry in resources.folder("schemas").joinpath(version).iterdir())
    return "\n".join(resources.text("schemas", version, name) for name in names)


def lake_ddl() -> str:
    """Return the DDL with the numbers of captures and replays that a lake has: 64 bits wide."""
    return re.sub(r"^(    (?:\w*capture_id|replay_id)) INTEGER\b", r"\1 BIGINT", ddl(), flags=re.MULTILINE)


def apply(connection: duckdb.DuckDBPyConnection, tracedb_version: str, is_lake: bool = False) -> None:
    """Create the tables in the current catalog, which must be empty. Call inside a transaction."""
    connection.execute(lake_ddl() if is_lake else ddl())
    connection.execute(
        "INSERT INTO meta.schema_version VALUES (?, ?, current_timestamp::TIMESTAMP)",
        [SCHEMA_VERSION, tracedb_version],
    )


def complete(connection: duckdb.DuckDBPyConnection) -> set[str]:
    """Add the tables and columns that the current catalog lacks: a file written before this version was released.

    New columns are NULL. Returns the added tables, with their schema. Call inside a transaction.
    """
    with in_memory() as fresh:
        fresh.execute(ddl())
        wanted = _columns_by_table(fresh)
        statements = [(str(item.query), item) for item in fresh.extract_statements(ddl())]
    there = _columns_by_table(connection)
    for text, statement in statements:
        about = re.match(r"\s*(?:--.*\s*)*(?:CREATE TABLE|INSERT INTO|COMMENT ON (?:TABLE|COLUMN)) (\w+\.\w+)\b", text)
        if about and about[1] not in there:
            connection.execute(statement)
    for table, columns in wanted.items():
        for name, kind in columns.items():
            if table in there and name not in there[table]:
                connection.execute(f"ALTER TABLE {table} ADD COLUMN {name} {kind}")
    return set(wanted) - set(there)


def _columns_by_table(connection: duckdb.DuckDBPyConnection) -> dict[str, dict[str, str]]:
    """Return the type of each column of each table, tables with their schema's name."""
    rows = connection.execute(
        """SELECT c.schema_name || '.' || c.table_name, c.column_name, c.data_type
           FROM duckdb_columns() AS c INNER JOIN duckdb_tables() AS t USING (table_oid, database_name, schema_name)
           WHERE c.database_name = current_database() AND c.schema_name IN ('main', 'meta')
           ORDER BY c.table_oid, c.column_index"""
    ).fetchall()
    found: dict[str, dict[str, str]] = {}
    for table, name, kind in rows:
        found.setdefault(table, {})[name] = kind
    return found


@cache
def arrow(table: str) -> pa.Schema:
    """Return the Arrow schema of a table as ingesters provide it: without ``capture_id``.

    It is parsed from the DDL: creating a database for it would add a tenth to the load of a small capture.
    """
    import pyarrow as pa

    kinds = {
        "BIGINT": pa.int64(),
        "BOOLEAN": pa.bool_(),
        "DOUBLE": pa.float64(),
        "INTEGER": pa.int32(),
        "MAP(VARCHAR, BIGINT)": pa.map_(pa.string(), pa.int64()),
        "MAP(VARCHAR, VARCHAR)": pa.map_(pa.string(), pa.string()),
        "TIMESTAMP": pa.timestamp("us"),
        "UBIGINT": pa.uint64(),
        "VARCHAR": pa.string(),
    }
    body = re.search(rf"^CREATE TABLE main\.{re.escape(table)} \(\n(.*?)^\);", ddl(), re.DOTALL | re.MULTILINE)
    if body is None:
        raise KeyError(table)
    columns = re.findall(r"^    (\w+) (MAP\([^)]*\)|\w+)", body[1], re.MULTILINE)
    return pa.schema([(name, kinds[kind]) for name, kind in columns if name != "capture_id"])


def tables(connection: duckdb.DuckDBPyConnection) -> list[tuple[str, str]]:
    """Return (table, comment) of the schema in the current catalog."""
    return connection.execute(
        """SELECT table_name, coalesce(comment, '') FROM duckdb_tables()
           WHERE database_name = current_database() AND schema_name = 'main' ORDER BY table_name"""
    ).fetchall()


def columns(connection: duckdb.DuckDBPyConnection, schema: str, name: str) -> list[Column]:
    """Return the columns of a table or view in the current catalog; empty if it does not exist."""
    rows = connection.execute(
        """SELECT column_name, data_type, coalesce(comment, '') FROM duckdb_columns()
           WHERE database_name = current_database() AND schema_name = ? AND table_name = ? ORDER BY column_index""",
        [schema, name],
    ).fetchall()
    return [Column(*row) for row in rows]
