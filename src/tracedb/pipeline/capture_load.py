"""Load one capture: read it on a connection of its own, then write it in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

import duckdb

from tracedb import ingester
from tracedb.errors import DatabaseBusy, ReadError
from tracedb.ingester import Begun, Ingester, Registered, Rows, Thorough
from tracedb.pipeline.digest import Hashing, digest_of
from tracedb.pipeline.known_captures import Known
from tracedb.pipeline.task import Loaded, Outcome, Request, Task, options_of, state_of
from tracedb.pipeline.writer import KnownBefore, Writer
from tracedb.storage import error_lines
from tracedb.storage.connection import ALIAS, transaction
from tracedb.storage.heeded_interrupt import raise_if_stopped

ROOMY_LIMIT = "1GB"
"""Second memory limit for the engine if the usual one was too small and the user set none."""
HASHED_AFTER = 1 << 30
"""Files up to this size are hashed after reading, while still in the page cache; larger ones while being read."""

Progress = Callable[[int], None]
Announce = Callable[[Task, Outcome], None]
"""Called right before a commit with the outcome the task will have after it."""


class Job:
    """Loads a capture. A fault is reported in the outcome and leaves the database unchanged."""

    def __init__(
        self,
        task: Task,
        request: Request,
        progress: Progress,
        begun: Begun | None = None,
        announce: Announce = lambda task, outcome: None,
    ) -> None:
        self.outcome = Outcome(task.path, task.size_bytes)
        self.request = request
        self.is_to_repeat = False
        """Set if the capture must be read again: the request to use."""
        self._task = task
        self._progress = progress
        self._begun = begun
        self._announce = announce
        self._is_second = False
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._rows: Iterator[Rows] | None = None
        self._ready: list[Rows] = []
        self._written: list[Loaded] = []
        self._is_written = self._is_committed = False
        self.broke_engine = False
        """Whether the engine instance has become unusable for all jobs."""

    @property
    def could_not_commit(self) -> bool:
        """Whether only the commit failed: the database file cannot grow (disk full)."""
        return self._is_written and not self._is_committed

    @property
    def is_done(self) -> bool:
        """Whether the outcome is final."""
        return self._is_committed or self.outcome.is_known or self.outcome.error is not None

    @property
    def is_ready(self) -> bool:
        """Whether there are rows to write."""
        return bool(self._ready)

    def is_settled(self, known: dict[int, set[str]]) -> bool:
        """Whether nothing will be loaded: the files are known, or cannot be read to find out."""
        size = self._task.size_bytes
        with self.faults_told():
            if size in known and (digest := digest_of(self._task.capture.files)) in known[size]:
                self.outcome.is_known, self.outcome.sha256 = True, digest
                self._progress(size)
        return self.outcome.is_known or self.outcome.error is not None

    def is_held(self, digests: set[str]) -> bool:
        """Whether the database already holds its files."""
        return self._hashing.result() in digests

    def repeat(self) -> None:
        """Begin anew."""
        self.is_to_repeat, self._is_second, self._begun = False, True, None
        self.outcome.error = None

    def read(self, source: tuple[Registered, Ingester], bench: duckdb.DuckDBPyConnection) -> None:
        """Read until the first rows are ready to be written."""
        raise_if_stopped()
        registered, reader = source
        self._stamp = f"{registered.distribution} {registered.version}"
        with self.faults_told():
            self._hashing = Hashing(self._task.capture.files)
            is_thorough = isinstance(reader, Thorough) and self._task.size_bytes <= HASHED_AFTER
            if not is_thorough:
                self._hashing.begin()
            self._connection = bench.cursor()
            self._connection.execute("SET preserve_insertion_order = false")
            options = options_of(self.request, None if self._is_second else self._progress, self._begun)
            options = replace(options, has_read=self._hashing.begin)
            self._rows = reader.read(self._task.capture, self._connection, options)
            first = next(self._rows, None)
            if first is None:
                raise ReadError(f"ingester {registered.name} gave no rows")
            self._ready.append(first)

    @contextmanager
    def committed(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Yield the connection inside a transaction on the attached database; commits after the block."""
        connection = self._connection
        assert connection is not None
        connection.execute(f"USE {ALIAS}")
        with transaction(connection):
            yield connection
            raise_if_stopped()
            self._is_written = True
            done = replace(self.outcome, loaded=self._written, sha256=self._hashing.result())
            self._announce(self._task, done)
        self._is_committed = True
        self.outcome.loaded, self.outcome.sha256 = done.loaded, done.sha256

    def write(self, known: Known) -> None:
        """Write everything into the prepared database, inside ``committed``; ``known``: the captures in it."""
        assert self._connection is not None
        writer = Writer(self._connection, self._task, self.request, self._digest, self._stamp, known)
        self._written = writer.run(self._all_rows())

    def add_to(self, known: Known) -> None:
        """Add the committed captures to the known ones."""
        known.add([item.capture_id for item in self.outcome.loaded], self._hashing.result())

    def _digest(self) -> str:
        """Return the digest of the files, which must not have changed during reading. Raises ``ReadError``.

        Otherwise a changed file could be recorded under the wrong digest and skipped forever.
        """
        digest = self._hashing.result()
        if state_of(self._task.capture.files) != (self._task.size_bytes, self._task.changed_ns):
            raise ReadError("the file was changed while it was read; load it again once it is complete")
        return digest

    def _all_rows(self) -> Iterator[Rows]:
        """Yield the rows that are ready, then the rest; nothing is kept after it was taken."""
        assert self._rows is not None
        while self._ready:
            yield self._ready.pop()
        yield from self._rows

    def close(self) -> None:
        """Release what reading holds."""
        if isinstance(self._rows, Generator):
            with suppress(Exception):  # a reader's failure to clean up does not affect what was written
                self._rows.close()
        if self._connection is not None:
            self._connection.close()
        self._rows = self._connection = None
        self._ready.clear()

    def give_up(self, other: Job) -> None:
        """Report the failure of another job as the reason that nothing was loaded."""
        self.outcome.error = other.outcome.error

    def fail(self, error: BaseException) -> None:
        """Report that nothing was loaded, and why."""
        said = error_lines.one_line(error, self._task.source)
        self.outcome.error = said.removeprefix(f"{self._task.path.name}: ")  # the command puts the path before it
        self.outcome.is_busy = isinstance(error, DatabaseBusy)
        self.outcome.loaded, self.outcome.is_known = [], False
        self.broke_engine = isinstance(error, duckdb.FatalException | duckdb.InternalException)

    @contextmanager
    def faults_told(self) -> Iterator[None]:
        """Put a fault into the outcome, unless a second attempt may succeed."""
        try:
            yield
        except DatabaseBusy:
            raise
        except KnownBefore:
            self.outcome.is_known, self.outcome.sha256 = True, self._hashing.result()
        except ingester.ReadAgain as error:
            if self._is_second:
                self.fail(error)
            self.is_to_repeat = not self._is_second
        except duckdb.OutOfMemoryException as error:
            if self._is_second or self.request.memory_limit is not None:
                self.fail(error)
            else:
                self.is_to_repeat, self.request = True, replace(self.request, memory_limit=ROOMY_LIMIT)
        except Exception as error:  # one faulty file must not stop the others
            if error_lines.is_interrupt(error):
                raise KeyboardInterrupt from error
            self.fail(error)
