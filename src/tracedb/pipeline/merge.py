"""Merge databases: copy the captures of several files into a new one, or those of one file into an existing one.

A capture that is already there, which its digest and part tell, is not copied again. Captures get new numbers; what is
derived from several captures (the alignment of clocks) is derived again. Only tables of an input are read, and of
these only the columns that this version knows: an input is not trusted.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import duckdb

from tracedb.derive import time_faults
from tracedb.errors import DatabaseBusy, TracedbError, UsageError
from tracedb.pipeline import after_load
from tracedb.pipeline.capture_copy import BATCH, OTHER, copy_rows, number_captures, number_replays, shared_columns
from tracedb.pipeline.task import Loaded
from tracedb.pipeline.writable_database import opened, prepare
from tracedb.storage import error_lines, pending_facts, schema, template_database
from tracedb.storage.connection import SCHEMA_VERSION, attach, transaction, workbench
from tracedb.storage.database_file import check_writable, is_unwritten
from tracedb.storage.heeded_interrupt import raise_if_stopped
from tracedb.storage.lock_wait import until_free
from tracedb.storage.spill_folder import spill_folder

MEMORY_LIMIT = "500MB"
SETTINGS = schema.SETTINGS
"""Tables that a user edits: a new file takes those of its first input."""
DERIVED = schema.ACROSS_CAPTURES
"""Tables about several captures, derived again."""
OF_TIMES = {"time_bound", "overlapping_kernel", "unrecorded_span", "critical_segment"}
"""Tables that ``time_faults.renew`` fills; an input of an earlier version may lack some."""


@dataclass(frozen=True)
class MergedCapture:
    """A capture of an input and its number in the target."""

    number: int
    """In the input."""
    path: str
    is_known: bool
    """Whether the target already held it."""
    loaded: Loaded
    """The capture in the target."""


@dataclass
class Merged:
    """The result for one input."""

    path: Path
    captures: list[MergedCapture] = field(default_factory=list)
    rows: int = 0
    """Rows copied, over all tables."""
    other_settings: list[str] = field(default_factory=list)
    """Tables of settings in which the input differs from the target, which keeps its own."""


def merge(inputs: Sequence[Path], target: Path, memory_limit: str = MEMORY_LIMIT) -> list[Merged]:
    """Write a new database with the captures of all inputs. It appears only when it is complete.

    Raises ``UsageError`` if the target exists or is an input, ``TracedbError`` if an input is not a tracedb database of
    this schema version or cannot be copied, ``DatabaseBusy`` while another process writes one.
    """
    for path in inputs:
        if _is_same(path, target):
            raise UsageError(f"{target}: is one of the databases to merge; give -o another name")
    if target.exists() and not is_unwritten(target):
        raise UsageError(
            f"{target}: exists; give -o another name, or add to it with "
            f"`tracedb ingest {' '.join(map(str, inputs))} --db {target}`"
        )
    check_writable(target)
    with spill_folder(target) as room:
        whole = Path(room) / "whole.duckdb"
        merged = []
        with workbench(memory_limit, None, whole) as connection, opened(connection, whole):
            for place, path in enumerate(inputs):
                with _read(connection, path), transaction(connection):
                    if not place:
                        template_database.mark_new(connection)
                        _take_settings(connection)
                    merged.append(_add(connection, path, {}))
        after_load.complete(whole)
        raise_if_stopped()
        _publish(whole, target)
    return merged


def add(path: Path, database: Path, labels: Mapping[str, str], memory_limit: str | None = None) -> Merged:
    """Copy the captures of a database into another one, which is created if needed, in one transaction.

    ``labels`` are given to the copies. Raises as ``merge`` does. The alignment of clocks becomes pending.
    """
    if _is_same(path, database):
        raise TracedbError(f"{path}: is the database that it is to be added to; name another one with --db")
    is_new = not database.exists() or is_unwritten(database)
    with workbench(memory_limit or MEMORY_LIMIT, None, database) as connection, opened(connection, database) as placed:
        try:
            with _read(connection, path), transaction(connection):
                prepare(connection, database)
                if is_new:
                    template_database.mark_new(connection)
                    _take_settings(connection)
                return _add(connection, path, labels)
        finally:
            if placed:
                template_database.remove_if_empty(connection, database)


def differing_settings(merged: Merged) -> list[str]:
    """Return in words which settings of an input are not taken over."""
    if not merged.other_settings:
        return []
    tables = ", ".join(merged.other_settings)
    return [f"its rows of {tables} differ and are not taken over; change those of the merged file if needed"]


def _is_same(path: Path, other: Path) -> bool:
    try:
        return path.samefile(other)
    except OSError:
        return False


@contextmanager
def _read(connection: duckdb.DuckDBPyConnection, path: Path) -> Iterator[None]:
    """Attach an input for reading. Raises ``TracedbError`` if it is of another schema version, or cannot be copied."""
    if not path.exists():
        raise UsageError(f"{path}: no such file")
    until_free(lambda: attach(connection, path, OTHER))
    try:
        _check_version(connection, path)
        yield
    except (duckdb.ConstraintException, duckdb.ConversionException, duckdb.OutOfRangeException) as error:
        raise TracedbError(f"{path}: holds rows that its tables may not hold; ingest its traces again") from error
    except duckdb.Error as error:
        if error_lines.is_interrupt(error):
            raise KeyboardInterrupt from error
        raise TracedbError(f"{path}: {error_lines.one_line(error)}") from error
    finally:
        connection.execute(f"DETACH {OTHER}")


def _check_version(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    if "version" not in _columns(connection, OTHER, "meta").get("schema_version", ()):
        raise TracedbError(f"{path}: a DuckDB file, but not one of tracedb's; only tracedb databases can be merged")
    ((version,),) = connection.execute(f"SELECT max(version) FROM {OTHER}.meta.schema_version").fetchall()
    if version != SCHEMA_VERSION:
        raise TracedbError(
            f"{path}: has schema version {version}, only version {SCHEMA_VERSION} can be merged; "
            "ingest its traces again, or merge it with the tracedb that wrote it"
        )


def _columns(connection: duckdb.DuckDBPyConnection, catalog: str | None, schema: str) -> dict[str, list[str]]:
    """Return the columns of each base table; ``catalog``: None for the current one. Views are never read."""
    rows = connection.execute(
        """SELECT c.table_name, list(c.column_name ORDER BY c.column_index)
           FROM duckdb_columns() AS c INNER JOIN duckdb_tables() AS t USING (table_oid, database_name, schema_name)
           WHERE c.database_name = coalesce(?, current_database()) AND c.schema_name = ? GROUP BY ALL ORDER BY ALL""",
        [catalog, schema],
    ).fetchall()
    return dict(rows)


def _take_settings(connection: duckdb.DuckDBPyConnection) -> None:
    """Replace the settings of a new target by those of the attached input."""
    there, here = _columns(connection, OTHER, "main"), _columns(connection, None, "main")
    for table in SETTINGS:
        if table in there and table in here:
            listed = shared_columns(here[table], there[table])
            connection.execute(f"DELETE FROM main.{table}")
            connection.execute(f"INSERT INTO main.{table} ({listed}) SELECT {listed} FROM {OTHER}.main.{table}")


def _add(connection: duckdb.DuckDBPyConnection, path: Path, labels: Mapping[str, str]) -> Merged:
    """Copy what the target lacks of the attached input. Call inside a transaction."""
    there, here = _columns(connection, OTHER, "main"), _columns(connection, None, "main")
    if not {"capture_id", "source", "sha256", "part"} <= set(there.get("capture", ())):
        raise TracedbError(f"{path}: its table capture lacks columns of schema version {SCHEMA_VERSION}; ingest again")
    number_captures(connection)
    merged = Merged(path)
    number_replays(connection)
    for table in sorted(here, key=lambda name: name != "capture"):
        if table in there and table not in (*SETTINGS, *DERIVED):
            merged.rows += copy_rows(connection, table, here[table], there[table], labels)
    for table in SETTINGS:
        if table in there and table in here and _differ(connection, table, shared_columns(here[table], there[table])):
            merged.other_settings.append(table)
    merged.captures = _captures(connection)
    new = [item.loaded.capture_id for item in merged.captures if not item.is_known]
    _owe(connection, new)
    if "time_bound" in merged.other_settings or not there.keys() >= OF_TIMES:
        time_faults.renew(connection, even_if_unchanged=bool(new))
    else:
        time_faults.renew(connection)
    return merged


def _differ(connection: duckdb.DuckDBPyConnection, table: str, listed: str) -> bool:
    own, other = (f"SELECT {listed} FROM {catalog}main.{table}" for catalog in ("", f"{OTHER}."))
    ((count,),) = connection.execute(
        f"SELECT count(*) FROM (({own} EXCEPT ALL {other}) UNION ALL ({other} EXCEPT ALL {own}))"
    ).fetchall()
    return bool(count)


def _owe(connection: duckdb.DuckDBPyConnection, captures: Sequence[int]) -> None:
    """Mark facts as pending for new captures: those that the input owes, and those about several captures."""
    if "owed" in _columns(connection, OTHER, "meta"):
        connection.execute(
            f"""INSERT INTO meta.owed SELECT o.fact, n.new_id FROM {OTHER}.meta.owed AS o
                INNER JOIN temp.{BATCH} AS n ON n.capture_id = o.capture_id AND NOT n.is_known"""
        )
    pending_facts.owe_all(connection, captures)


def _captures(connection: duckdb.DuckDBPyConnection) -> list[MergedCapture]:
    rows = connection.execute(
        f"""SELECT n.capture_id, coalesce(c.path, ''), n.is_known, n.new_id, c.rank, c.status, c.labels,
                c.events_read, c.events_skipped, c.rows_written,
                (SELECT count(*) FROM main.kernel_event AS e WHERE e.capture_id = n.new_id AND e.kind = 'kernel'),
                coalesce((SELECT list((i.code, i.severity, i.count, coalesce(i.detail, '')) ORDER BY i.code, i.detail)
                    FROM main.ingest_issue AS i WHERE i.capture_id = n.new_id), []),
                (SELECT count(*) FROM main.operator_sample AS s WHERE s.capture_id = n.new_id)
                + (SELECT count(*) FROM main.measure AS m WHERE m.capture_id = n.new_id),
                (SELECT count(*) > 0 FROM main.counter AS h WHERE h.capture_id = n.new_id)
            FROM temp.{BATCH} AS n INNER JOIN main.capture AS c ON c.capture_id = n.new_id ORDER BY n.capture_id"""
    ).fetchall()
    return [
        MergedCapture(number, path, known, Loaded(new, rank, status, dict(labels or {}), *rest))
        for number, path, known, new, rank, status, labels, *rest in rows
    ]


def _publish(whole: Path, target: Path) -> None:
    """Give the complete file its name; one that appeared meanwhile is not replaced."""
    where = Path(os.path.realpath(target))
    with whole.open("rb") as file:
        os.fsync(file.fileno())
    try:
        if is_unwritten(where):
            where.unlink()
        os.link(whole, where)
    except FileExistsError as error:
        raise DatabaseBusy(f"{target}: another process has made it meanwhile; give -o another name") from error
    except OSError:  # the file system has no hard links
        whole.rename(where)
