"""Databases that stay open between commands of a test process.

Starting an engine and reading the catalog of a file takes a third of the time of a report on a few rows. Each command
gets a connection of its own, with its own temporary tables and variables, to an engine with the settings that
``open_read_only`` gives it, and one thread: several cost more than they gain on a few rows. What opening does by itself
is tested by processes and in ``tests/storage``, where none are held.
"""

from __future__ import annotations

import atexit
import functools
import os
import sys
import tempfile
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tracedb.storage import connection as database
from tracedb.storage.database_file import log_of
from tracedb.storage.lake_store import is_lake

_THREADS = os.cpu_count() or 1
MOST = 4
"""Databases that are open at once; 0 opens each anew."""

_engines: list[duckdb.DuckDBPyConnection] = []
"""Engines for writing that no command uses now; starting and ending one takes a sixth of a small ingest."""

Key = tuple[str, int, int, int]
_held: OrderedDict[Key, tuple[ExitStack, duckdb.DuckDBPyConnection]] = OrderedDict()
_open_read_only = database.open_read_only
_engine = database._engine


@contextmanager
def kept() -> Iterator[None]:
    """Have the commands inside read databases that are kept open."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database, "open_read_only", _opened)
        patch.setattr(database, "_engine", _reused_engine)
        yield


def close() -> None:
    """Close them all: neither another process nor this one could write a file that is open for reading."""
    while _held:
        _held.popitem()[1][0].close()


@contextmanager
def _reused_engine(settings: database.Settings) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield an engine with these settings; it is kept unless the command failed or left something in it."""
    if not MOST:
        with _engine(settings) as connection:
            yield connection
        return
    engine = _set_up(_engines.pop(), settings) if _engines else database.in_memory(settings)
    with ExitStack() as stack:
        stack.callback(engine.close)
        with engine.cursor() as cursor:  # has temporary tables and variables of its own
            yield cursor
        if engine.execute(_LEFT).fetchall() == [(0,)]:
            stack.pop_all()
            _engines.append(engine)


_LEFT = """SELECT (SELECT count(*) FROM duckdb_tables() WHERE database_name = 'memory')
    + (SELECT count(*) FROM duckdb_databases() WHERE NOT internal AND database_name <> 'memory')"""


def _set_up(engine: duckdb.DuckDBPyConnection, settings: database.Settings) -> duckdb.DuckDBPyConnection:
    try:
        for name, value in {"threads": _THREADS, **settings}.items():
            engine.execute(f"SET {name} = {database.quoted(str(value))}")
    except duckdb.Error:  # it has spilled; another folder for that cannot be set
        engine.close()
        return database.in_memory(settings)
    return engine


def _opened(
    path: Path, memory_limit: str | None = None, settings: database.Settings | None = None
) -> AbstractContextManager[duckdb.DuckDBPyConnection]:
    key = None if memory_limit or settings or not MOST else _key(path)
    return _open_read_only(path, memory_limit, settings) if key is None else _cursor(path, key)


@contextmanager
def _cursor(path: Path, key: Key) -> Iterator[duckdb.DuckDBPyConnection]:
    if key not in _held:
        with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
            patch.setattr(database, "spill_folder", lambda *_, **__: nullcontext(_spill()))  # nothing beside the file
            connection = stack.enter_context(_open_read_only(path, settings={"threads": 1}))
            _held[key] = stack.pop_all(), connection
        while len(_held) > MOST:
            _held.popitem(last=False)[1][0].close()
    _held.move_to_end(key)
    with _held[key][1].cursor() as cursor:
        cursor.execute(f"USE {database.ALIAS}")
        yield cursor


@functools.cache
def _spill() -> str:
    folder = tempfile.TemporaryDirectory(prefix="tracedb-tests-")
    atexit.register(folder.cleanup)
    return folder.name


def _key(path: Path) -> Key | None:
    """Return what tells the content of a file from any other; None for a lake, and for a file with a log."""
    if is_lake(path) or not path.is_file() or log_of(path).exists():
        return None
    found = path.stat()
    return os.path.realpath(path), found.st_ino, found.st_mtime_ns, found.st_size


def _before_a_process(event: str, _: tuple[Any, ...]) -> None:
    if event in ("subprocess.Popen", "os.fork", "os.posix_spawn"):
        close()
        while _engines:  # a fork has none of its threads
            _engines.pop().close()


sys.addaudithook(_before_a_process)


def _after_closing(work: Callable[..., Any], opens_to_write: Callable[..., bool]) -> Callable[..., Any]:
    @functools.wraps(work)
    def done(*given: Any, **named: Any) -> Any:
        if opens_to_write(*given, **named):
            close()
        return work(*given, **named)

    return done


def _is_to_write(path: object = ":memory:", read_only: bool = False, **_: Any) -> bool:
    return not read_only and path != ":memory:"


database._attach = _after_closing(database._attach, lambda *_: True)
duckdb.connect = _after_closing(duckdb.connect, _is_to_write)
