"""Opening database files: for writing for a short while, for reading, and never in each other's way."""

from __future__ import annotations

import os
import re
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import duckdb

from tracedb.errors import DatabaseBusy, TracedbError
from tracedb.spill import spill_folder

STORAGE_VERSION = "v1.2.0"  # readable by every DuckDB shell since 1.2
ALIAS = "trace"
SCHEMA_VERSION = 1
ROW_GROUP = 61_440
"""Rows that a row group of the database holds: half of what DuckDB makes unless told otherwise.

A thread writes one at a time, and the kernels of a usual trace would not fill two.
"""
STORAGE = f"STORAGE_VERSION '{STORAGE_VERSION}', ROW_GROUP_SIZE {ROW_GROUP}"
"""Options with which a database is attached for writing."""


def quoted(text: str) -> str:
    """Return ``text`` as an SQL string literal."""
    return "'" + text.replace("'", "''") + "'"


def identifier(text: str) -> str:
    """Return ``text`` as a quoted SQL identifier."""
    return '"' + text.replace('"', '""') + '"'


@contextmanager
def workbench(memory_limit: str, threads: int | None, beside: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open an in-memory instance for staging; what exceeds ``memory_limit`` spills to a folder beside ``beside``."""
    with spill_folder(beside) as spill:
        settings: dict[str, str | bool | int | float | list[str]] = {
            "memory_limit": memory_limit,
            "temp_directory": spill,
            "checkpoint_threshold": "64MB",  # detaching does it once for all; small captures would have it done often
        }
        if threads is not None:
            settings["threads"] = threads
        connection = duckdb.connect(":memory:", config=settings)
        try:
            connection.execute("SET preserve_insertion_order = false")
            # Kernel names reach 5,000 characters; one above 4,096 rules dictionaries out for its whole row group, which
            # then lies uncompressed unless zstd may take it.
            connection.execute("SET zstd_min_string_length = 200")
            # They are tried on every column and hardly ever taken: a seventh of the time of an insert.
            connection.execute("SET disabled_compression_methods = 'rle,fsst,chimp,patas'")
            yield connection
        finally:
            connection.close()


@contextmanager
def attached(
    connection: duckdb.DuckDBPyConnection, path: Path, wait_seconds: float = 10.0
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Attach ``path`` read-write as the current catalog; its lock is held only inside the block.

    Raises ``DatabaseBusy`` where another process keeps it locked, ``TracedbError`` where it is no DuckDB file, or where
    what was committed cannot be moved into it (a full disk).
    """
    _attach(connection, path, time.monotonic() + wait_seconds)
    try:
        connection.execute(f"USE {ALIAS}")
        yield connection
    except BaseException:
        with suppress(duckdb.Error):  # a disk that is full says so a second time
            _detach(connection)
        raise
    try:
        _detach(connection)
    except duckdb.Error as error:
        cause = first_words(error).rpartition("Original error: ")[2]
        raise TracedbError(f"{path}: cannot be written ({cause}); make room and run it again") from error


def _detach(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("USE memory")
    connection.execute(f"DETACH {ALIAS}")


def _attach(connection: duckdb.DuckDBPyConnection, path: Path, deadline: float) -> None:
    while True:
        try:
            connection.execute(f"ATTACH {quoted(str(path))} AS {ALIAS} ({STORAGE})")
            return
        except duckdb.IOException as error:
            if not _locked(error):
                raise TracedbError(_not_a_database(path, error)) from error
            if time.monotonic() > deadline:
                raise DatabaseBusy(_busy(path, error)) from error
            time.sleep(0.2)
        except duckdb.Error as error:
            raise TracedbError(_not_a_database(path, error)) from error


@contextmanager
def transaction(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Commit at the end of the block, or roll back whatever ended it."""
    connection.execute("BEGIN TRANSACTION")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        with suppress(duckdb.TransactionException):  # a failed commit has ended the transaction already
            connection.execute("ROLLBACK")
        raise


def open_read_only(path: Path, memory_limit: str | None = None) -> duckdb.DuckDBPyConnection:
    """Open a tracedb file for reading with external access off and the configuration locked.

    Raises ``TracedbError`` where there is no such file or it is none of tracedb's, ``DatabaseBusy`` while it is
    written.
    """
    if not path.exists():
        raise TracedbError(
            f"{path}: no such database; run `tracedb ingest PATH --db {path}` first, or name one with --db"
        )
    settings: dict[str, str | bool | int | float | list[str]] = {"temp_directory": _spill(path)}
    if memory_limit:
        settings["memory_limit"] = memory_limit
    connection = duckdb.connect(":memory:", config=settings)
    try:
        _attach_read_only(connection, path)
        check_version(connection, path)
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
    except BaseException:
        connection.close()
        raise
    return connection


def _spill(path: Path) -> str:
    """Return a folder of this process for what exceeds memory; DuckDB makes it when needed and removes it."""
    folder = path.parent if os.access(path.parent, os.W_OK) else Path(tempfile.gettempdir())
    return str(folder / f".{path.name}.{os.getpid()}.tmp")


def _attach_read_only(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    """Make the file the current catalog, under our name for it: a file named v1.duckdb would hide schema v1."""
    try:
        connection.execute(f"ATTACH {quoted(str(path))} AS {ALIAS} (READ_ONLY)")
        connection.execute(f"USE {ALIAS}")
    except duckdb.IOException as error:
        if _locked(error):
            raise DatabaseBusy(_busy(path, error)) from error
        raise TracedbError(_not_a_database(path, error)) from error
    except duckdb.Error as error:
        raise TracedbError(_not_a_database(path, error)) from error


def connect(path: str | Path) -> duckdb.DuckDBPyConnection:
    """Open a tracedb file for reading; its tables and views can be asked as in the DuckDB shell."""
    return open_read_only(Path(path))


def first_words(error: duckdb.Error) -> str:
    """Return what a DuckDB error says in one line, without the excerpt of the query that it points into."""
    words = []
    for line in str(error).splitlines():
        if line.startswith("LINE "):
            break
        if line.strip():
            words.append(line.strip())
    return " ".join(words)


def check_version(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    """Raise ``TracedbError`` unless the current catalog has the schema that this tracedb knows."""
    try:
        ((version,),) = connection.execute("SELECT max(version) FROM meta.schema_version").fetchall()
    except duckdb.CatalogException as error:
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
    return "could not set lock on file" in str(error).lower()  # a path may hold the word, too


def _busy(path: Path, error: duckdb.IOException) -> str:
    holder = re.search(r"PID (\d+)", str(error))
    who = f"process {holder[1]}" if holder else "another process"
    return f"{path}: {who} has the database open; close it there (a DuckDB shell? an ingest?) and try again"


def _not_a_database(path: Path, error: duckdb.Error) -> str:
    first = str(error).splitlines()[0]
    return f"{path}: cannot be opened as a DuckDB database ({first}); name another file with --db"
