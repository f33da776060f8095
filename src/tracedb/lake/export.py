"""``tracedb export lake``: copy a database's captures into a lake."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import duckdb

from tracedb.lake import align, repair
from tracedb.lake.repair import Faulty
from tracedb.lake.write import LakeWriter, Numbered
from tracedb.storage import lake_manifest, lake_tables, pending_facts, template_database
from tracedb.storage.connection import connect, identifier
from tracedb.storage.lake_manifest import FOLDER
from tracedb.storage.spill_folder import temporary_folder


@dataclass(frozen=True)
class Exported:
    """What an export did."""

    written: int
    """Captures that are new in the lake."""
    known: int


def export(database: Path, root: Path) -> Exported:
    """Copy what a lake lacks of a database, and facts about several captures. The database may be a lake itself.

    Raises ``TracedbError`` if the lake cannot be written, and what opening the database raises.
    """
    lake = lake_manifest.create(root)
    connection = connect(database)
    try:
        with temporary_folder() as folder:
            writer = LakeWriter(connection, lake, Path(folder))
            faulty = repair.faulty_entries(lake, {item.held.size_bytes or 0 for item in writer.captures})
            known = {item.capture_id for item in lake_manifest.read(lake, _unreadable(faulty)).held()}
            known -= {item.capture_id for entry in faulty for item in entry.captures}
            new = [item for item in writer.captures if item.held.capture_id not in known]
            writer.write(new)
            repair.remove_replaced(lake, faulty)
            writer.write_general()
            if _has_own_settings(connection):
                writer.write_settings()
            aligned = [] if pending_facts.owed(connection) else _whole_runs(writer.captures, root)
            for run, captures in aligned:
                writer.write_facts(run, captures)
    finally:
        connection.close()
    align.align(root, only={item.held.run for item in new})
    return Exported(len(new), len(writer.captures) - len(new))


def _unreadable(faulty: list[Faulty]) -> list[str]:
    """Return the files of entries that cannot be read; they are written again."""
    return [f"{FOLDER}/{entry.name}" for entry in faulty if not entry.captures]


def _whole_runs(captures: list[Numbered], root: Path) -> list[tuple[str, list[Numbered]]]:
    """Return the runs of several captures all of whose captures are in the database, so that its facts are theirs."""
    here = {item.held.capture_id: item for item in captures}
    return [
        (run, [here[item.capture_id] for item in held])
        for run, held in lake_manifest.read(lake_manifest.opened(root)).runs().items()
        if all(item.capture_id in here for item in held)
    ]


def _has_own_settings(connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether the tables that a user edits differ from those of a new database."""
    with template_database.opened() as fresh:
        for table in lake_tables.SETTINGS:
            query = f"SELECT {', '.join(map(identifier, lake_tables.declared()[table]))} FROM main.{table} ORDER BY ALL"
            try:
                if connection.execute(query).fetchall() != fresh.execute(query).fetchall():
                    return True
            except duckdb.CatalogException:  # a database of an earlier version, without this table or column
                continue
    return False
