"""One capture into the database: read, then load and derive in one transaction."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from threading import Thread

import duckdb
import pyarrow as pa

from tracedb import blank, ingester, schema, views
from tracedb.database import attached, check_version, is_ours, transaction, workbench
from tracedb.errors import DatabaseBusy, ReadError, TracedbError
from tracedb.ingester import Begun
from tracedb.tasks import MEMORY_LIMIT, Outcome, Request, Task, options_of
from tracedb.writing import KnownBefore, Writer

ROOMY_LIMIT = "1GB"
"""For the database engine where its usual memory did not suffice and the user set no limit."""


def load(
    task: Task,
    request: Request,
    known: dict[int, set[str]],
    progress: Callable[[int], None] = lambda done: None,
    turn: Callable[[], AbstractContextManager[None]] = nullcontext,
    begun: Begun | None = None,
) -> Outcome:
    """Load one capture in one transaction; the database is locked only while rows are written.

    ``turn`` is entered before the database is opened and left after it is closed. ``begun``: what reads the capture
    already. A fault of the file is in the outcome, and leaves the database as it was. Raises ``DatabaseBusy``,
    ``KeyboardInterrupt`` and errors of our own.
    """
    outcome = Outcome(task.capture.files[0], task.size_bytes)
    try:
        if task.size_bytes in known and digest_of(task.capture.files) in known[task.size_bytes]:
            outcome.is_known = True
            progress(task.size_bytes)
            return outcome
        try:
            _load(task, request, outcome, progress, turn, begun)
        except ingester.ReadAgain:
            _load(task, request, outcome, None, turn)
        except duckdb.OutOfMemoryException:
            if request.memory_limit is not None:
                raise
            _load(task, replace(request, memory_limit=ROOMY_LIMIT), outcome, None, turn)
    except DatabaseBusy:
        raise
    except TracedbError as error:
        outcome.error, outcome.loaded = str(error), []
    except (OSError, duckdb.Error, pa.ArrowException, UnicodeError) as error:
        if "KeyboardInterrupt" in str(error):  # which came while DuckDB had Python hand it a table
            raise KeyboardInterrupt from error
        outcome.error, outcome.loaded = _one_line(error), []
    return outcome


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, duckdb.OutOfMemoryException):
        return f"not enough memory ({text[:200]}); raise --memory-limit"
    return text[:500]


def _load(
    task: Task,
    request: Request,
    outcome: Outcome,
    progress: Callable[[int], None] | None,
    turn: Callable[[], AbstractContextManager[None]],
    begun: Begun | None = None,
) -> None:
    """Load a capture; without ``progress`` for the second time."""
    registered, source = next(pair for pair in ingester.load(task.source))
    hashing = _Hashing(task.capture.files)
    existed = request.database.exists()
    wanted = source.memory_limit if isinstance(source, ingester.Weighed) else MEMORY_LIMIT
    with workbench(request.memory_limit or wanted, request.cores, request.database) as connection:
        rows = source.read(task.capture, connection, options_of(request, progress, begun))
        first = next(rows, None)
        if first is None:
            raise ReadError(f"ingester {registered.name} gave no rows")
        with turn():
            try:
                is_copy = not existed and blank.place(request.database)
                with attached(connection, request.database), transaction(connection):
                    prepare(connection, request.database)
                    if is_copy:
                        blank.mark_new(connection)
                    stamp = f"{registered.distribution} {registered.version}"
                    loader = Writer(connection, task, request, hashing.result, stamp)
                    outcome.loaded = loader.run(first, rows)
            except KnownBefore:
                outcome.is_known = True
            except BaseException:
                if not existed:
                    _remove_if_empty(request.database)
                raise


def _remove_if_empty(database: Path) -> None:
    """Remove a file that this run created and that nothing was committed to."""
    try:
        with duckdb.connect(str(database), read_only=True) as connection:
            empty = not is_ours(connection) or connection.execute("FROM main.capture LIMIT 1").fetchone() is None
    except duckdb.Error:
        return
    if empty:
        database.unlink(missing_ok=True)


def prepare(connection: duckdb.DuckDBPyConnection, database: Path) -> None:
    """Give the attached database its tables and views, where it is new or its views are older than ours."""
    from tracedb import __version__

    if not is_ours(connection):
        schema.apply(connection, __version__)
        views.install(connection)
        return
    check_version(connection, database)
    if views.outdated(connection):
        views.install(connection)


def digest_of(paths: Sequence[Path]) -> str:
    """Return the SHA-256 over the bytes of all files."""
    digest = hashlib.sha256()
    block = memoryview(bytearray(1 << 18))  # filled again and again: it stays in the cache of a core
    for path in paths:
        with path.open("rb", buffering=0) as file:
            while read := file.readinto(block):
                digest.update(block[:read])
    return digest.hexdigest()


class _Hashing:
    """Hashes files beside the reading; hashing releases the interpreter lock."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._digest: str | None = None
        self._error: OSError | None = None
        self._thread = Thread(target=self._run, args=(paths,), name="tracedb-hash", daemon=True)
        self._thread.start()

    def _run(self, paths: Sequence[Path]) -> None:
        try:
            self._digest = digest_of(paths)
        except OSError as error:
            self._error = error

    def result(self) -> str:
        self._thread.join()
        if self._digest is None:
            raise self._error or OSError("the file could not be hashed")
        return self._digest
