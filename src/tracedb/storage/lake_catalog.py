"""A lake as a database: a small DuckDB file whose tables are views over the Parquet files of a lake.

The views of tracedb read it like any other database, so every command that reads, and any DuckDB shell, can use it.
The file is a copy of the template, which has all views, so none has to be created.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tracedb.storage import lake_manifest, lake_tables, template_database
from tracedb.storage.connection import ALIAS, STORAGE, identifier, in_memory, quoted, transaction
from tracedb.storage.lake_manifest import Held, HeldCapture, Manifest
from tracedb.storage.lake_store import Store

if TYPE_CHECKING:
    import duckdb


class Source:
    """Files of one table, and which captures in them count (None: all)."""

    def __init__(self, layout: str, ids: frozenset[int] | None) -> None:
        self.layout = layout
        self.ids = ids
        self.paths: list[str] = []


def build(lake: Store, target: Path, captures: Collection[int] | None = None, with_facts: bool = True) -> Manifest:
    """Write the DuckDB file ``target``, which must not exist, for a lake; returns the lake's manifest.

    ``captures``: only these, and only their files are opened. ``with_facts`` false: the tables of facts about several
    captures are empty and writable. Raises ``TracedbError`` if the lake is damaged or of a newer tracedb.
    """
    manifest = lake_manifest.read(lake)
    template_database.fill(target, is_lake=True)
    with in_memory() as connection:
        lake.register(connection)
        connection.execute(f"ATTACH {quoted(str(target))} AS {ALIAS} ({STORAGE})")
        connection.execute(f"USE {ALIAS}")
        with transaction(connection):
            fill(connection, lake, manifest, captures, with_facts)
        connection.execute("USE memory")
        connection.execute(f"DETACH {ALIAS}")
    return manifest


def fill(
    connection: duckdb.DuckDBPyConnection,
    lake: Store,
    manifest: Manifest,
    captures: Collection[int] | None,
    with_facts: bool,
) -> None:
    """Replace the tables of the current catalog by views over a lake."""
    chosen = None if captures is None else frozenset(captures)
    wanted = [item for item in manifest.held() if chosen is None or item.capture_id in chosen]
    sources = sources_of(lake, manifest, chosen, with_facts)
    for table in lake_tables.declared():
        found = sources.get(table, [])
        if table in lake_tables.SETTINGS:
            if found:
                connection.execute(f"DELETE FROM main.{table}")
                connection.execute(f"INSERT INTO main.{table} {_select(connection, table, found)}")
        elif table == "capture":
            _capture_table(connection, wanted, found)
        elif found:
            connection.execute(f"DROP TABLE main.{table}")
            connection.execute(f"CREATE VIEW main.{table} AS {_select(connection, table, found)}")


def sources_of(
    lake: Store, manifest: Manifest, chosen: frozenset[int] | None, with_facts: bool
) -> dict[str, list[Source]]:
    found: dict[str, dict[tuple[str, frozenset[int] | None], Source]] = {}

    def add(held: Held, ids: frozenset[int] | None) -> None:
        for file in held.entry.files:
            key = (held.entry.layout, ids)
            source = found.setdefault(file.table, {}).setdefault(key, Source(*key))
            source.paths.append(lake.url(file.path))

    for held in manifest.captures:
        ids = held.ids if chosen is None else held.ids & chosen
        if ids:
            add(held, None if held.is_whole and ids == held.ids else ids)
    for held in manifest.general if chosen is None else ():
        add(held, None)
    for held in manifest.facts.values() if with_facts else ():
        if chosen is None or chosen & held.ids:
            add(held, None if chosen is None else chosen & held.ids)
    if manifest.settings is not None:
        add(manifest.settings, None)
    return {table: list(sources.values()) for table, sources in found.items()}


def _select(connection: duckdb.DuckDBPyConnection, table: str, sources: Sequence[Source]) -> str:
    """Return the SELECT of a table over its files; columns that older files lack are NULL."""
    columns = lake_tables.declared()[table]
    parts = []
    for source in sources:
        files = f"read_parquet([{', '.join(map(quoted, source.paths))}], hive_partitioning = false)"
        has = set(columns)
        if source.layout != lake_tables.layout():
            first = f"DESCRIBE SELECT * FROM read_parquet([{quoted(source.paths[0])}], hive_partitioning = false)"
            has = {name for name, *_ in connection.execute(first).fetchall()}
        stored = {name: lake_tables.stored_type(name, kind) for name, kind in columns.items()}
        listed = [
            lake_tables.read_back(name, kind)
            if name in has and name != lake_tables.NOT_STORED.get(table)
            else f"NULL::{stored[name]} AS {identifier(name)}"
            for name, kind in columns.items()
        ]
        of = "" if source.ids is None else f" WHERE capture_id IN ({', '.join(map(str, sorted(source.ids)))})"
        parts.append(f"SELECT {', '.join(listed)} FROM {files}{of}")
    return " UNION ALL ".join(parts)


def _capture_table(
    connection: duckdb.DuckDBPyConnection, wanted: Iterable[HeldCapture], sources: Sequence[Source]
) -> None:
    """Make ``main.capture`` a table: nearly every view reads it, some of them often."""
    if not sources:
        return
    columns = ", ".join(
        "w.ingested_at::TIMESTAMP" if name == "ingested_at" else f"c.{identifier(name)}"
        for name in lake_tables.declared()["capture"]
    )
    rows = [(item.capture_id, item.ingested_at) for item in wanted]
    connection.execute(
        f"""INSERT INTO main.capture
            SELECT {columns} FROM ({_select(connection, "capture", sources)}) AS c
            INNER JOIN (SELECT unnest(?::BIGINT[]) AS capture_id, unnest(?::VARCHAR[]) AS ingested_at) AS w
                ON w.capture_id = c.capture_id
            ORDER BY c.path, c.part, c.capture_id""",
        [[number for number, _ in rows], [at for _, at in rows]],
    )
