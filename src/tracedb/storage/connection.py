"""Open database files: briefly for writing, for reading, and without blocking other processes."""

from __future__ import annotations

import re
import weakref
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import duckdb

from tracedb.errors import DatabaseBusy, EmptyDatabase, TracedbError
from tracedb.storage.database_file import (
    absolute,
    check,
    check_writable,
    damage,
    fault,
    identity,
    is_damage,
    is_unwritten,
    log_of,
    size_of,
    unwritable,
    withdraw,
)
from tracedb.storage.error_lines import engine_words, unwritten
from tracedb.storage.lake_store import is_lake, shown, store
from tracedb.storage.lock_wait import until_free
from tracedb.storage.spill_folder import spill_folder

STORAGE_VERSION = "v1.2.0"  # readable by every DuckDB shell since 1.2
ALIAS = "trace"
SCHEMA_VERSION = 1
ROW_GROUP = 61_440
"""Rows per row group of the database: half of DuckDB's default.

Each thread writes one at a time, and the kernels of a typical trace would not fill two of the default size.
"""
SMALL = 16 << 20
"""Bytes of a database, or of a lake's files, below which most reports take longer to plan than to run."""
STORAGE = f"STORAGE_VERSION '{STORAGE_VERSION}', ROW_GROUP_SIZE {ROW_GROUP}"
"""Options for attaching a database for writing."""


class NotMoved(TracedbError):
    """Committed data cannot be moved from the log into the file (disk full); it is rolled back if possible."""


def quoted(text: str) -> str:
    """Return ``text`` as an SQL string literal."""
    return "'" + text.replace("'", "''") + "'"


def identifier(text: str) -> str:
    """Return ``text`` as a quoted SQL identifier."""
    return '"' + text.replace('"', '""') + '"'


Settings = dict[str, str | bool | int | float | list[str]]
ALONE: Settings = {"autoinstall_known_extensions": False, "autoload_known_extensions": False}
"""No file, type or function name makes DuckDB load or fetch an extension."""
FRUGAL: Settings = {"allocator_bulk_deallocation_flush_threshold": "20kB"}
"""Give freed memory back to the system at once. It costs time, so only reports of tens of thousands of rows do."""


def in_memory(settings: Settings | None = None) -> duckdb.DuckDBPyConnection:
    """Open an empty in-memory database that loads no extensions; all of tracedb's connections are made here."""
    return duckdb.connect(":memory:", config={**ALONE, **(settings or {})})


@contextmanager
def workbench(memory_limit: str, threads: int | None, beside: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open an in-memory instance for staging; data beyond ``memory_limit`` spills to a folder next to ``beside``.

    Raises ``TracedbError`` if no database can be created at ``beside``.
    """
    check_writable(beside)
    with _spill(beside) as spill:
        settings: Settings = {
            "memory_limit": memory_limit,
            "temp_directory": spill,
            "checkpoint_threshold": "64MB",  # detaching checkpoints anyway; small captures would trigger it too often
        }
        if threads is not None:
            settings["threads"] = threads
        with _engine(settings) as connection:
            connection.execute("SET preserve_insertion_order = false")
            # Kernel names reach 5,000 characters; one above 4,096 disables dictionaries for its whole row group, which
            # is then uncompressed unless zstd may be used.
            connection.execute("SET zstd_min_string_length = 200")
            # DuckDB tries them on every column and hardly ever uses them, at a seventh of an insert's time.
            connection.execute("SET disabled_compression_methods = 'rle,fsst,chimp,patas'")
            yield connection


@contextmanager
def _engine(settings: Settings) -> Iterator[duckdb.DuckDBPyConnection]:
    connection = in_memory(settings)
    try:
        yield connection
    finally:
        connection.close()


@contextmanager
def _spill(beside: Path) -> Iterator[str]:
    """Yield a spill folder; that it can be created shows that a database can be, too."""
    with ExitStack() as stack:
        try:
            made = stack.enter_context(spill_folder(beside))
        except OSError as error:
            raise TracedbError(f"{beside}: {unwritable(beside.parent, error)}") from error
        yield made


@contextmanager
def attached(connection: duckdb.DuckDBPyConnection, path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Attach ``path`` read-write as the current catalog; its lock is held only inside the block.

    Waits for another process that holds it, as ``lock_wait.PATIENCE`` says. Raises ``DatabaseBusy`` if it is held
    longer, ``TracedbError`` if it is not a DuckDB file or cannot be written, ``NotMoved`` if committed data cannot be
    moved into it.
    """
    check_writable(path)
    until_free(lambda: _attach(connection, path))
    before = size_of(log_of(path))
    try:
        connection.execute(f"USE {ALIAS}")
        yield connection
        written = size_of(log_of(path))
    except BaseException:
        with suppress(duckdb.Error):  # a full disk fails a second time
            _detach(connection)
        raise
    try:
        _detach(connection)
    except duckdb.Error as error:
        withdraw(path, before, written)
        cause = engine_words(error).rpartition("Original error: ")[2]
        why = unwritten(error) or f"cannot be written ({cause}); make room and run it again"
        raise NotMoved(f"{path}: {why}") from error


def _detach(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("USE memory")
    connection.execute(f"DETACH {ALIAS}")


def _attach(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    before = identity(path)
    attach(connection, path, ALIAS, STORAGE)
    if before is not None and identity(path) != before:  # removed or replaced between opening and locking
        _detach(connection)
        raise DatabaseBusy(f"{path}: another process is creating it again; try again later")


def attach(connection: duckdb.DuckDBPyConnection, path: Path, alias: str, options: str = "READ_ONLY") -> None:
    """Attach a file as ``alias``; its name is always taken as a file name.

    Raises ``DatabaseBusy`` while another process writes it, ``TracedbError`` if it is not a DuckDB file.
    """
    named = quoted(str(absolute(path)))
    if path.exists() and (options == "READ_ONLY" or path.stat().st_size):
        check(path)
    try:
        connection.execute(f"ATTACH {named} AS {alias} (TYPE duckdb, {options})")
    except duckdb.IOException as error:
        if _locked(error):
            raise DatabaseBusy(_busy(path, error)) from error
        raise TracedbError(fault(path, error)) from error
    except duckdb.Error as error:
        raise TracedbError(fault(path, error)) from error


@contextmanager
def transaction(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Commit at the end of the block, or roll back if it ends with an exception."""
    connection.execute("BEGIN TRANSACTION")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        with suppress(duckdb.TransactionException):  # a failed commit has already ended the transaction
            connection.execute("ROLLBACK")
        raise


@contextmanager
def open_read_only(
    path: Path, memory_limit: str | None = None, settings: Settings | None = None
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a tracedb file, or a lake, for reading with external access off and the configuration locked.

    Raises ``TracedbError`` if the file does not exist or is not tracedb's, ``EmptyDatabase`` if nothing was written
    into it yet, ``DatabaseBusy`` if it is being written for longer than ``lock_wait.PATIENCE`` says.
    """
    with spill_folder(path, or_elsewhere=True) as spill:
        connection = _opened(path, spill, memory_limit, settings)
        try:
            connection.execute("SET enable_external_access = false")
            connection.execute("SET lock_configuration = true")
            yield connection
        except duckdb.Error as error:
            if not is_damage(error):
                raise
            raise TracedbError(damage(path, error)) from error
        finally:
            connection.close()


def connect(path: str | Path) -> duckdb.DuckDBPyConnection:
    """Open a tracedb file, or a lake, as a plain DuckDB connection: read-only, with its tables and views.

    Everything else is as with ``duckdb.connect()``: data frames in variables, ``read_csv``, ``COPY … TO``, ``ATTACH``,
    temporary tables, settings. Nothing is fetched from a network unless an extension is installed by hand.
    Raises ``TracedbError`` if the file does not exist, is not tracedb's, or is being written.
    """
    with ExitStack() as stack:
        spill = stack.enter_context(spill_folder(Path(path), or_elsewhere=True))
        connection = _opened(Path(path), spill)
        weakref.finalize(connection, stack.pop_all().close)  # removes the folder with the connection
    return connection


def _opened(
    path: Path, spill: str, memory_limit: str | None = None, settings: Settings | None = None
) -> duckdb.DuckDBPyConnection:
    file, size_bytes = sized_file(path, spill)
    chosen: Settings = {**(settings or {}), "temp_directory": spill}
    if memory_limit:
        chosen["memory_limit"] = memory_limit
    connection = in_memory(chosen)
    try:
        plan_for_size(connection, [(file, size_bytes)])
        give_access(connection, [path])
        use(connection, path, file, ALIAS)  # under our alias: a file named v1.duckdb would hide schema v1
    except BaseException:
        connection.close()
        raise
    return connection


def use(connection: duckdb.DuckDBPyConnection, path: Path, file: Path, alias: str) -> None:
    """Attach the ``file`` of ``path`` (see ``as_file``) for reading, as the current catalog.

    Raises as ``open_read_only`` does.
    """
    absolute(file)
    if not file.exists():
        raise TracedbError(
            f"{path}: no such database; run `tracedb ingest PATH --db {path}` first, or name one with --db"
        )
    if is_unwritten(file):
        raise EmptyDatabase(f"{path}: {_NOTHING_YET}")
    until_free(lambda: attach(connection, file, alias))
    connection.execute(f"USE {alias}")
    check_version(connection, path)


def plan_for_size(connection: duckdb.DuckDBPyConnection, files: Iterable[tuple[Path, int | None]]) -> None:
    """Choose how to plan for these files, each with its size in bytes if known: with less effort if all are small.

    Queries on small files use one thread: there is little to share out, and each thread takes memory of its own.
    """
    for file, size_bytes in files:
        if size_bytes is None and not file.is_file():  # said when it is attached
            return
        if (file.stat().st_size if size_bytes is None else size_bytes) >= SMALL:
            return
    connection.execute("SET threads = 1")
    plan_quickly(connection)


def plan_quickly(connection: duckdb.DuckDBPyConnection) -> None:
    """Leave out an optimization of DuckDB 2 that takes most of the time to plan views over many others.

    ``why``, ``critical_path`` and ``pipeline_bubble`` take half the CPU time without it.
    """
    has_it = connection.execute("SELECT count(*) FROM duckdb_optimizers() WHERE name = 'projection_pullup'").fetchall()
    if has_it == [(1,)]:
        connection.execute("SET disabled_optimizers = 'projection_pullup'")


def give_access(connection: duckdb.DuckDBPyConnection, paths: Iterable[Path]) -> None:
    """Let a connection read the lakes among ``paths`` even when external access is off. Call before that."""
    lakes = [store(path) for path in paths if is_lake(path)]
    for lake in lakes:
        lake.register(connection)
    if lakes:
        folders = ", ".join(quoted(lake.folder_for_engine) for lake in lakes)
        connection.execute(f"SET allowed_directories = [{folders}]")


def as_file(path: Path, folder: str, name: str = "lake") -> Path:
    """Return the database file at ``path``; of a lake, one that is written into a private folder (``lake_catalog``).

    A connection that attaches the latter must be given access to the lake: ``give_access``.
    """
    return sized_file(path, folder, name)[0]


def sized_file(path: Path, folder: str, name: str = "lake") -> tuple[Path, int | None]:
    """Return what ``as_file`` does and the bytes of a lake's Parquet files, None for a database."""
    if not is_lake(path):
        return path, None
    from tracedb.storage import lake_catalog, lake_manifest  # they open databases with this module

    made = Path(folder) / f"{name}.duckdb"
    try:
        size_bytes = lake_catalog.build(lake_manifest.opened(path), made).size_bytes
    except (duckdb.Error, OSError) as error:
        raise TracedbError(
            f"{shown(path)}: cannot be read: {engine_words(error)}; `tracedb lake verify {shown(path)}` lists what is "
            "missing or damaged"
        ) from error
    return made, size_bytes


_NOTHING_YET = "nothing was written into it yet; run `tracedb ingest PATH` into it first"


def check_version(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    """Raise ``TracedbError`` unless the current catalog has a schema version that this tracedb knows."""
    try:
        ((version,),) = connection.execute("SELECT max(version) FROM meta.schema_version").fetchall()
    except duckdb.CatalogException as error:
        if not is_ours(connection):
            raise EmptyDatabase(f"{path}: a DuckDB file, but not one of tracedb's: {_NOTHING_YET}") from error
        raise TracedbError(
            f"{path}: a DuckDB file, but not one of tracedb's (it has no meta.schema_version)"
        ) from error
    if version is None:
        raise TracedbError(f"{path}: meta.schema_version is empty; the file is damaged, ingest again into a new one")
    if version > SCHEMA_VERSION:
        raise TracedbError(
            f"{path}: has schema version {version}, this tracedb knows up to {SCHEMA_VERSION}; install a newer tracedb"
        )


def is_ours(connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether the current catalog holds a tracedb schema (False for a new, empty file)."""
    ((count,),) = connection.execute(
        "SELECT count(*) FROM duckdb_tables() WHERE database_name = current_database()"
    ).fetchall()
    return bool(count)


def _locked(error: duckdb.IOException) -> bool:
    return "could not set lock on file" in str(error).lower()  # not just "lock": a path may contain it


def _busy(path: Path, error: duckdb.IOException) -> str:
    holder = re.search(r"PID (\d+)", str(error))
    who = f"process {holder[1]}" if holder else "another process"
    return (
        f"{path}: {who} has the database open; close it there (a DuckDB shell? an ingest?) and try again, "
        "or wait longer (--wait SECONDS)"
    )
