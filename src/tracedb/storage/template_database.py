"""Create new databases as copies of an empty template: creating tables and views takes seconds, a copy none.

The template is in the user's cache folder, under a name made of everything that determines its content. If there is no
such folder, or it is not writable, the tables and views are created from their declarations.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

import duckdb

from tracedb.errors import DatabaseBusy, TracedbError
from tracedb.storage import schema, views
from tracedb.storage.connection import ALIAS, STORAGE, STORAGE_VERSION, attach, in_memory, quoted, transaction
from tracedb.storage.database_file import (
    DUCKDB_MAGIC,
    HEAD_BYTES,
    OTHER,
    absolute,
    check_writable,
    held,
    is_unwritten,
    log_of,
)
from tracedb.storage.error_lines import engine_words
from tracedb.storage.lock_wait import until_free
from tracedb.storage.spill_folder import spill_folder

if sys.platform != "win32":
    import fcntl

PATIENCE_SECONDS = 30.0
"""Longest wait for another process that makes the template; making it takes some 2 s."""
PAUSE_SECONDS = 0.05


def place(database: Path) -> bool:
    """Create an empty database if there is no file yet, or only an unwritten one; returns whether it did.

    Another process sees no file or a complete one, whichever of several creates it. Raises ``TracedbError`` if there is
    no room or no such folder, ``DatabaseBusy`` while another process creates the file.
    """
    where = Path(os.path.realpath(database))  # a link may point to the intended place
    if where.exists() and not is_unwritten(where):
        return False
    check_writable(database)
    if not where.parent.is_dir():
        raise TracedbError(f"{database}: is a link, and there is no folder {where.parent}; create it first, or {OTHER}")
    try:
        return _placed(where)
    except (OSError, duckdb.Error) as error:
        cause = error.strerror if isinstance(error, OSError) else engine_words(error).rpartition('": ')[2]
        raise TracedbError(f"{database}: cannot be created ({cause}); make room and run it again") from error


def _placed(where: Path) -> bool:
    with spill_folder(where) as beside:
        whole = Path(beside) / "empty.duckdb"
        fill(whole)
        if where.exists():
            return until_free(lambda: _replace(whole, where))
        try:
            _link(whole, where)
        except FileExistsError:
            return False
    return True


def remove_if_empty(connection: duckdb.DuckDBPyConnection, database: Path) -> None:
    """Remove the attached database, which this process created, unless anything was loaded into it.

    It is locked meanwhile; a process that opens it now finds it gone once it has the lock (``attached``).
    """
    if connection.execute("FROM main.capture LIMIT 1").fetchone() is None:
        Path(os.path.realpath(database)).unlink(missing_ok=True)


@contextmanager
def opened() -> Iterator[duckdb.DuckDBPyConnection]:
    """Open an empty database for reading: the template, or one made in memory if no template can be kept."""
    kept = _template(is_lake=False)
    with in_memory() as connection:
        try:
            if kept is not None:
                attach(connection, kept, ALIAS)
                connection.execute(f"USE {ALIAS}")
        except TracedbError:  # a tracedb of another version has just removed it, or it is damaged
            kept = None
        if kept is None:
            _create(connection, is_lake=False)
        yield connection


def fill(path: Path, is_lake: bool = False) -> None:
    """Write an empty database to a new file: a copy of the template, or a newly made one if no template can be kept.

    ``is_lake``: one whose tables are to be replaced by views over a lake (see ``schema.lake_ddl``).
    """
    kept = _template(is_lake)
    if kept is not None:
        try:
            shutil.copyfile(kept, path)
            return
        except OSError:  # a tracedb of another version has just removed it, or it cannot be read
            path.unlink(missing_ok=True)
    _make(path, is_lake)


def _link(whole: Path, where: Path) -> None:
    """Rename the file into place. Raises FileExistsError if another process was faster."""
    try:
        os.link(whole, where)
    except FileExistsError:
        raise
    except OSError:  # the file system has no hard links
        with where.open("xb") as new, whole.open("rb") as content:
            shutil.copyfileobj(content, new)


def _replace(whole: Path, where: Path) -> bool:
    """Replace an unwritten file and the log of a run that failed to start it."""
    before = where.stat()
    with held(where) as is_held:
        if not is_held:
            raise DatabaseBusy(f"{where}: another process is creating it; try again")
        if not is_unwritten(where) or not os.path.samestat(before, where.stat()):
            return False
        log_of(where).unlink(missing_ok=True)
        whole.replace(where)
    return True


def mark_new(connection: duckdb.DuckDBPyConnection) -> None:
    """Store the creation time in a database that holds nothing yet. Call inside a transaction."""
    connection.execute("UPDATE meta.schema_version SET applied_at = current_timestamp::TIMESTAMP")


def _folder() -> Path | None:
    root = Path(os.environ.get("XDG_CACHE_HOME", ""))
    try:
        # A relative one is to be ignored, says the specification: each working directory would have a cache.
        return absolute((root if root.is_absolute() else Path.home() / ".cache") / "tracedb")
    except (RuntimeError, TracedbError):  # there is no home folder, or DuckDB cannot use a file in it
        return None


def _template(is_lake: bool) -> Path | None:
    """Return a template, creating it if needed; None if there is no cache folder, or no room in it."""
    folder = _folder()
    if folder is not None:
        with suppress(OSError, duckdb.Error):  # no room or no permission in the cache
            return _kept(folder, is_lake)
    return None


def _kept(folder: Path, is_lake: bool) -> Path:
    """Return the template for this tracedb and this DuckDB, creating it if needed."""
    kind = "lake" if is_lake else "empty"
    if (kept := _whole(folder, f"{kind}-{_key()}")) is not None:
        return kept
    folder.mkdir(parents=True, exist_ok=True)
    with _only_maker(folder), spill_folder(folder / "any") as made_in:
        if (kept := _whole(folder, f"{kind}-{_key()}")) is not None:
            return kept
        fresh = Path(made_in) / "empty.duckdb"
        _make(fresh, is_lake)
        for older in folder.glob(f"{kind}-*.duckdb"):
            with suppress(OSError):
                older.unlink()
        kept = folder / f"{kind}-{_key()}-{fresh.stat().st_size}.duckdb"
        fresh.replace(kept)
    return kept


def _whole(folder: Path, name: str) -> Path | None:
    """Return the template of this name, which ends with its size in bytes: one that was cut short is made again."""
    for found in folder.glob(f"{name}-*.duckdb"):
        with suppress(OSError), found.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if found.name == f"{name}-{size}.duckdb" and file.read(HEAD_BYTES)[8:12] == DUCKDB_MAGIC:
                return found
    return None


@contextmanager
def _only_maker(folder: Path) -> Iterator[None]:
    """Wait until no other process makes a template in this folder: processes started together would all make one.

    A process that was stopped does not block others for longer than ``PATIENCE_SECONDS``.
    """
    if sys.platform == "win32":  # folders cannot be locked there
        yield
        return
    number = os.open(folder, os.O_RDONLY)
    ends = time.monotonic() + PATIENCE_SECONDS
    try:
        while time.monotonic() < ends:
            try:
                fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(PAUSE_SECONDS)
            except OSError:  # a file system without locks
                break
        yield
    finally:
        os.close(number)


def _create(connection: duckdb.DuckDBPyConnection, is_lake: bool) -> None:
    """Create the tables and views in the current catalog, which is empty."""
    from tracedb import __version__

    with transaction(connection):
        schema.apply(connection, __version__, is_lake)
        views.install(connection)


def _make(path: Path, is_lake: bool) -> None:
    with in_memory({"threads": 1}) as connection:
        connection.execute(f"ATTACH {quoted(str(path))} AS {ALIAS} ({STORAGE})")
        connection.execute(f"USE {ALIAS}")
        _create(connection, is_lake)
        connection.execute(f"CHECKPOINT {ALIAS}")
        connection.execute("USE memory")
        connection.execute(f"DETACH {ALIAS}")


def _key() -> str:
    """Return a digest of everything that determines the template's content."""
    return _digest(tuple(view for version in views.VERSIONS for view in views.shipped(version)))


@cache  # hashing all views takes a thirtieth of a small ingest
def _digest(shipped: tuple[views.View, ...]) -> str:
    from tracedb import __version__

    digest = hashlib.sha256(f"{__version__} {duckdb.__version__} {STORAGE_VERSION} ".encode())
    digest.update(schema.ddl().encode())
    for view in shipped:
        digest.update(f"{view.version}.{view.name}:{view.digest}".encode())
    return digest.hexdigest()[:20]
