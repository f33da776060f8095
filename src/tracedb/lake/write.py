"""Write captures of a database into a lake."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import count
from pathlib import Path

import duckdb

from tracedb.errors import TracedbError
from tracedb.storage import lake_manifest, lake_tables
from tracedb.storage.connection import SCHEMA_VERSION, identifier, quoted
from tracedb.storage.error_lines import unwritten
from tracedb.storage.lake_manifest import Entry, HeldCapture, Kind, LakeFile
from tracedb.storage.lake_store import ATTEMPTS, Store

ROW_GROUP = 122_880
NUMBERED = "lake_capture"
"""Temporary table: capture of the database, its number in the lake."""
REPLAYS = "lake_replay"
OPTIONS = f"FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {ROW_GROUP}"


Name = Callable[[Sequence[LakeFile]], str | None]


@dataclass(frozen=True)
class Numbered:
    """A capture of the database."""

    here: int
    """Its number in the database."""
    held: HeldCapture

    @property
    def source(self) -> str:
        """The name of the entry that has it: captures of one file are written together."""
        return lake_manifest.source_name(self.held.sha256, self.held.size_bytes or 0)


class LakeWriter:
    """Writes rows of the current catalog of a connection into a lake, through a private folder."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, lake: Store, folder: Path) -> None:
        self._connection = connection
        self._lake = lake
        self._folder = folder
        self._numbers = count()
        # Equal rows must give equal files, whose names are their digests.
        connection.execute("SET threads = 1")
        connection.execute("SET preserve_insertion_order = true")
        self.captures = _numbered(connection)
        self._there = _tables(connection)
        self._number_rows()

    def write(self, captures: Sequence[Numbered]) -> None:
        """Write captures, those of one file as one entry; what the lake holds already must not be among them."""
        sources: dict[str, list[Numbered]] = {}
        for item in captures:
            sources.setdefault(item.source, []).append(item)
        counts = self._counts({item.here for item in captures})
        for name, items in sources.items():
            self._write_together(name, items, counts)

    def write_together(self, name: str, captures: Sequence[Numbered]) -> None:
        """Write captures of one run as an entry of this name."""
        self._write_together(name, captures, self._counts({item.here for item in captures}))

    def _write_together(self, name: str, captures: Sequence[Numbered], counts: Mapping[str, set[int]]) -> None:
        here = [item.here for item in captures]
        tables = [
            table
            for table in self._there
            if table not in (*lake_tables.SETTINGS, *lake_tables.FACTS)
            and any(number in counts.get(table, ()) for number in here)
        ]
        where = f"t.capture_id IN ({', '.join(map(str, here))})"
        self._enter(_always(name), "captures", captures, lambda: self._parts(tables, captures[0].held.run, where))

    def write_facts(self, run: str, captures: Sequence[Numbered]) -> None:
        """Write the facts about several captures: those of a whole run."""
        where = f"t.capture_id IN ({', '.join(str(item.here) for item in captures)})"
        self._enter(
            _always(lake_manifest.facts_name(run)),
            "facts",
            captures,
            lambda: self._parts(lake_tables.FACTS, run, where),
            run,
        )

    def write_general(self) -> None:
        """Write rows that belong to no capture."""

        def name(files: Sequence[LakeFile]) -> str | None:
            digest = hashlib.sha256("".join(file.sha256 for file in files).encode()).hexdigest()
            return f"general-{digest[:32]}.json" if files else None

        tables = ("ingest_issue", "sample_status")
        self._enter(name, "general", [], lambda: self._parts(tables, "", "t.capture_id IS NULL"))

    def write_settings(self) -> None:
        """Write the tables that a user edits."""
        self._enter(_always("settings.json"), "settings", [], lambda: self._parts(lake_tables.SETTINGS, "", "true"))

    def _enter(
        self,
        name: Name,
        kind: Kind,
        captures: Sequence[Numbered],
        parts: Callable[[], list[LakeFile]],
        run: str | None = None,
    ) -> None:
        """Write files and the entry that names them; again if another process has removed one in between.

        ``name``: gives the entry's name for its files; None if they need no entry.
        A file that was in the lake already is not written, but until the entry is there it may be removed as unused.
        Raises ``TracedbError`` if the lake, or the folder for temporary files, cannot be written.
        """
        try:
            self._try_to_enter(name, kind, captures, parts, run)
        except OSError as error:
            why = f"({error.strerror or error}); make room or have it made writable, and run it again"
            raise TracedbError(f"{self._lake}: cannot be written {why}") from error
        except duckdb.IOException as error:
            if (said := unwritten(error)) is None:
                raise
            raise TracedbError(f"{self._folder.parent}: {said}") from error

    def _try_to_enter(
        self,
        name: Name,
        kind: Kind,
        captures: Sequence[Numbered],
        parts: Callable[[], list[LakeFile]],
        run: str | None,
    ) -> None:
        for _ in range(ATTEMPTS):
            files = parts()
            if (named := name(files)) is None:
                return
            entry = Entry(
                kind=kind,
                layout=lake_tables.layout(),
                schema=SCHEMA_VERSION,
                captures=[item.held for item in captures],
                files=files,
                run=run,
            )
            lake_manifest.write_entry(self._lake, named, entry)
            if all(lake_manifest.has_its_size(self._lake, file) for file in entry.files):
                return
        raise TracedbError(f"{self._lake}: another process keeps removing files that are being written; try again")

    def _number_rows(self) -> None:
        connection = self._connection
        connection.execute(f"CREATE OR REPLACE TEMP TABLE {NUMBERED} (here BIGINT, lake_id BIGINT)")
        if self.captures:
            connection.execute(
                f"INSERT INTO {NUMBERED} SELECT unnest(?::BIGINT[]), unnest(?::BIGINT[])",
                [[item.here for item in self.captures], [item.held.capture_id for item in self.captures]],
            )
        connection.execute(
            f"""CREATE OR REPLACE TEMP TABLE {REPLAYS} AS
                SELECT
                    r.replay_id AS here,
                    (('0x' || sha256(concat_ws('/', n.lake_id, r.replayed_at, r.mode))[:16])::UBIGINT >> 1)::BIGINT
                        AS lake_id
                FROM main.replay_run AS r INNER JOIN temp.{NUMBERED} AS n ON n.here = r.capture_id"""
        )

    def _counts(self, captures: Collection[int]) -> dict[str, set[int]]:
        """Return which of the captures have rows in each table."""
        listed = ", ".join(map(str, captures)) or "NULL"
        return {
            table: {
                number
                for (number,) in self._connection.execute(
                    f"SELECT DISTINCT capture_id FROM main.{table} WHERE capture_id IN ({listed})"
                ).fetchall()
            }
            for table, columns in self._there.items()
            if "capture_id" in columns
        }

    def _parts(self, tables: Sequence[str], run: str, where: str) -> list[LakeFile]:
        return [file for table in tables if table in self._there for file in self._part(table, run, where)]

    def _part(self, table: str, run: str, where: str) -> list[LakeFile]:
        """Write one file of a table; none if it would have no rows."""
        made = self._folder / f"{next(self._numbers)}.parquet"
        declared = lake_tables.declared()[table]
        listed, joins = _projected(table, declared, self._there[table])
        query = f"SELECT {listed} FROM main.{table} AS t{joins} WHERE {where} ORDER BY {lake_tables.order(declared)}"
        ((rows,),) = self._connection.execute(f"COPY ({query}) TO {quoted(str(made))} ({OPTIONS})").fetchall()
        if not rows:
            made.unlink(missing_ok=True)
            return []
        with made.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        below = "" if table in lake_tables.SMALL else f"run={run}/"
        done = LakeFile(table, f"{table}/{below}part-{digest}.parquet", digest, made.stat().st_size, rows)
        self._lake.put(done.path, made)
        made.unlink(missing_ok=True)
        return [done]


def _always(name: str) -> Name:
    return lambda files: name


def _projected(table: str, declared: Mapping[str, str], there: Collection[str]) -> tuple[str, str]:
    """Return the columns as they are stored, and the joins that number captures and replays."""
    listed, joins = [], []
    for place, (name, kind) in enumerate(declared.items()):
        stored = lake_tables.stored_type(name, kind)
        if name not in there or name == lake_tables.NOT_STORED.get(table):
            listed.append(f"NULL::{stored} AS {identifier(name)}")
        elif name in (*lake_tables.CAPTURE_COLUMNS, lake_tables.REPLAY_COLUMN):
            numbers = REPLAYS if name == lake_tables.REPLAY_COLUMN else NUMBERED
            joins.append(f" LEFT JOIN temp.{numbers} AS n{place} ON n{place}.here = t.{identifier(name)}")
            listed.append(f"n{place}.lake_id AS {identifier(name)}")
        else:
            listed.append(f"{lake_tables.written(name, kind, 't')} AS {identifier(name)}")
    return ", ".join(listed), "".join(joins)


def _tables(connection: duckdb.DuckDBPyConnection) -> dict[str, list[str]]:
    """Return the columns of the tables in the current catalog; those of a lake are views."""
    rows = connection.execute(
        """SELECT table_name, list(column_name ORDER BY column_index) FROM duckdb_columns()
           WHERE database_name = current_database() AND schema_name = 'main' GROUP BY table_name"""
    ).fetchall()
    found = dict(rows)
    return {table: found[table] for table in lake_tables.declared() if table in found}


def _numbered(connection: duckdb.DuckDBPyConnection) -> list[Numbered]:
    """Return the captures of the current catalog with their numbers in a lake."""
    rows = connection.execute(
        """SELECT capture_id, sha256, part, labels, rank, source, path, size_bytes, ingested_at
           FROM main.capture ORDER BY path, part, capture_id"""
    ).fetchall()
    return [_of_lake(*row) for row in rows]


def _of_lake(
    here: int,
    sha256: str | None,
    part: int,
    labels: dict[str, str] | None,
    rank: int | None,
    source: str,
    path: str | None,
    size: int | None,
    ingested_at: datetime | None,
) -> Numbered:
    digest = sha256 or hashlib.sha256(f"{path}/{ingested_at}/{here}".encode()).hexdigest()
    at = None if ingested_at is None else ingested_at.isoformat()
    run = lake_manifest.run_name(labels or {})
    number = lake_manifest.capture_number(digest, part)
    held = HeldCapture(number, digest, part, run, dict(labels or {}), rank, source, path, size, at)
    return Numbered(here, held)
